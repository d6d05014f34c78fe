//! The program of rounds.c in Zig, on its DebugAllocator (formerly GeneralPurposeAllocator).
//!
//! usage: rounds default|16 ROUNDS
//!
//! `default` takes the default configuration, which keeps 6 frames in a Debug build and none in
//! others; `16` sets `.stack_trace_frames`. Zig unwinds by the call frame information, with or
//! without frame pointers. `deinit` asserts that nothing leaked, as in the PR (an unsafe build
//! does not check).

const std = @import("std");
const linux = std.os.linux;

const slot_count = 32;
const block_bytes = 128;

const Spent = struct { rounds: u64, frees: u64 };

fn now() u64 {
    var at: linux.timespec = undefined;
    _ = linux.clock_gettime(.MONOTONIC, &at);
    return @as(u64, @intCast(at.sec)) * 1_000_000_000 + @as(u64, @intCast(at.nsec));
}

fn Frames(comptime Debug: type, comptime depth: usize) type {
    return struct {
        noinline fn make(debug: *Debug) []u8 {
            const block = if (depth == 1)
                debug.allocator().alloc(u8, block_bytes) catch @panic("out of memory")
            else
                Frames(Debug, depth - 1).make(debug);
            // Code after the call, so that it cannot become a jump.
            std.mem.doNotOptimizeAway(block.ptr);
            return block;
        }

        noinline fn drop(debug: *Debug, block: []u8) void {
            if (depth == 1) debug.allocator().free(block) else Frames(Debug, depth - 1).drop(debug, block);
            std.mem.doNotOptimizeAway(debug);
        }
    };
}

fn Program(comptime config: std.heap.DebugAllocatorConfig) type {
    return struct {
        const Debug = std.heap.DebugAllocator(config);
        const frames = Frames(Debug, 16);

        noinline fn measured(debug: *Debug, survivors: [][]u8) Spent {
            const start = now();
            for (survivors) |*survivor| {
                var slots: [slot_count][]u8 = undefined;
                for (&slots) |*slot| slot.* = frames.make(debug);
                survivor.* = slots[0];
                for (slots[1..]) |slot| frames.drop(debug, slot);
            }
            const between = now();
            for (survivors) |survivor| frames.drop(debug, survivor);
            return .{ .rounds = between - start, .frees = now() - between };
        }

        fn run(rounds: usize) !void {
            const survivors = try std.heap.page_allocator.alloc([]u8, rounds);
            var debug: Debug = .init;
            const spent = measured(&debug, survivors);
            if (debug.deinit() != .ok) return error.Leak;
            var text: [160]u8 = undefined;
            const line = try std.fmt.bufPrint(&text, "figure rounds_ns {d}\nfigure frees_ns {d}\nfigure rounds {d}\nall freed\n", .{
                spent.rounds, spent.frees, rounds,
            });
            _ = linux.write(1, line.ptr, line.len);
        }
    };
}

pub fn main(init: std.process.Init.Minimal) !void {
    var arguments = init.args.iterate();
    _ = arguments.skip();
    const frames = arguments.next() orelse return error.Usage;
    const rounds = try std.fmt.parseInt(usize, arguments.next() orelse return error.Usage, 10);
    if (std.mem.eql(u8, frames, "default")) {
        try Program(.{}).run(rounds);
    } else if (std.mem.eql(u8, frames, "16")) {
        try Program(.{ .stack_trace_frames = 16 }).run(rounds);
    } else return error.Usage;
}
