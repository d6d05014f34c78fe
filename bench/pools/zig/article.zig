//! The Zig columns of the article's table: the churn of `src/article.rs`, with
//! the same random numbers and so the very same creations and destructions, on
//! Zig's own allocators.
//!
//! usage: article STORE BYTES ROUNDS touched|untouched WARM
//!
//! The stores: `debug`, DebugAllocator as it comes (in a release build it
//! captures no stack traces); `debug-traces`, the same with the six frames that
//! it captures in a debug build; `pool-page` and `pool-smp`, std's MemoryPool
//! over page_allocator and over smp_allocator. The debug ones are meant to be
//! built ReleaseSafe, the pools ReleaseFast, each as its users build it.
//!
//! Prints `ns` an operation and the `counts` that the Rust program must repeat.
//! WARM is a number of bytes that are touched and given back first: see
//! `src/measure.rs`.

const std = @import("std");
const linux = std.os.linux;

const target = 256;
const page = 4096;

/// SplitMix64.
const Random = struct {
    state: u64,

    inline fn next(self: *Random) u64 {
        self.state +%= 0x9e3779b97f4a7c15;
        var z = self.state;
        z = (z ^ (z >> 30)) *% 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) *% 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    /// 53 bits, from 0 to below 1.
    inline fn fraction(self: *Random) f64 {
        // Signed, which is one instruction everywhere.
        return @as(f64, @floatFromInt(@as(i64, @intCast(self.next() >> 11)))) * 0x1p-53;
    }

    inline fn below(self: *Random, limit: usize) usize {
        return @intCast(((self.next() >> 32) * limit) >> 32);
    }
};

fn Object(comptime bytes: usize) type {
    return struct { bytes: [bytes]u8 };
}

/// DebugAllocator, directly: each object is an allocation of its own.
fn Debug(comptime T: type, comptime config: std.heap.DebugAllocatorConfig) type {
    return struct {
        backing: std.heap.DebugAllocator(config),

        fn init() @This() {
            return .{ .backing = .init };
        }
        inline fn create(self: *@This()) *T {
            return self.backing.allocator().create(T) catch @panic("out of memory");
        }
        inline fn destroy(self: *@This(), object: *T) void {
            self.backing.allocator().destroy(object);
        }
    };
}

fn Pool(comptime T: type, comptime backing: std.mem.Allocator) type {
    return struct {
        pool: std.heap.MemoryPool(T),

        fn init() @This() {
            return .{ .pool = .empty };
        }
        inline fn create(self: *@This()) *T {
            return self.pool.create(backing) catch @panic("out of memory");
        }
        inline fn destroy(self: *@This(), object: *T) void {
            self.pool.destroy(@alignCast(object));
        }
    };
}

fn now() u64 {
    var at: linux.timespec = undefined;
    _ = linux.clock_gettime(.MONOTONIC, &at);
    return @as(u64, @intCast(at.sec)) * 1_000_000_000 + @as(u64, @intCast(at.nsec));
}

/// One byte in each page of the object, and its last.
inline fn touch(comptime bytes: usize, object: [*]u8) void {
    const volatile_object: [*]volatile u8 = object;
    var at: usize = 0;
    while (at < bytes) : (at += page) volatile_object[at] = 1;
    if (bytes > 1) volatile_object[bytes - 1] = 1;
}

fn churn(comptime T: type, comptime touched: bool, store: anytype, rounds: usize) void {
    var live: [4 * target]*T = undefined;
    var count: usize = 0;
    var peak: usize = 0;
    var allocations: usize = 0;
    var frees: usize = 0;
    var random: Random = .{ .state = 42 };
    const start = now();
    for (0..rounds) |_| {
        const fill = @as(f64, @floatFromInt(@as(i64, @intCast(count)))) / target;
        if (random.fraction() <= fill and count > 0) {
            const at = random.below(count);
            const object = live[at];
            count -= 1;
            live[at] = live[count];
            store.destroy(object);
            frees += 1;
        }
        if (random.fraction() >= fill) {
            const object = store.create();
            std.mem.doNotOptimizeAway(object);
            if (touched) touch(@sizeOf(T), @ptrCast(object));
            live[count] = object;
            count += 1;
            peak = @max(peak, count);
            allocations += 1;
        }
    }
    const spent: f64 = @floatFromInt(now() - start);
    const operations: f64 = @floatFromInt(allocations + frees);
    var text: [128]u8 = undefined;
    const line = std.fmt.bufPrint(&text, "figure ns {d:.3}\nfigure made {d}\nfigure destroyed {d}\nfigure peak {d}\n", .{
        spent / operations, allocations, frees, peak,
    }) catch unreachable;
    _ = linux.write(1, line.ptr, line.len);
}

fn warm(bytes: usize) void {
    const memory = std.heap.page_allocator.alloc(u8, bytes) catch return;
    var at: usize = 0;
    const written: [*]volatile u8 = memory.ptr;
    while (at < bytes) : (at += page) written[at] = 1;
    std.heap.page_allocator.free(memory);
}

fn sized(comptime bytes: usize, comptime touched: bool, name: []const u8, rounds: usize) !void {
    const T = Object(bytes);
    if (std.mem.eql(u8, name, "debug")) {
        var store: Debug(T, .{}) = .init();
        churn(T, touched, &store, rounds);
    } else if (std.mem.eql(u8, name, "debug-traces")) {
        var store: Debug(T, .{ .stack_trace_frames = 6 }) = .init();
        churn(T, touched, &store, rounds);
    } else if (std.mem.eql(u8, name, "pool-page")) {
        var store: Pool(T, std.heap.page_allocator) = .init();
        churn(T, touched, &store, rounds);
    } else if (std.mem.eql(u8, name, "pool-smp")) {
        var store: Pool(T, std.heap.smp_allocator) = .init();
        churn(T, touched, &store, rounds);
    } else return error.UnknownStore;
}

pub fn main(init: std.process.Init.Minimal) !void {
    var arguments = init.args.iterate();
    _ = arguments.skip();
    const name = arguments.next() orelse return error.Usage;
    const bytes = try std.fmt.parseInt(usize, arguments.next() orelse return error.Usage, 10);
    const rounds = try std.fmt.parseInt(usize, arguments.next() orelse return error.Usage, 10);
    const touched = std.mem.eql(u8, arguments.next() orelse return error.Usage, "touched");
    warm(try std.fmt.parseInt(usize, arguments.next() orelse return error.Usage, 10));
    inline for (.{ 1, 8 * 1024, 1024 * 1024 }) |size| {
        if (size == bytes) {
            if (touched) try sized(size, true, name, rounds) else try sized(size, false, name, rounds);
            return;
        }
    }
    return error.UnknownSize;
}
