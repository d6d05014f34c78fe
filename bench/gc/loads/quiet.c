// quiet [frames=N] [layout=...] ...
//
// A program that hardly allocates, as optcarrot, Ruby's game console: a toy processor of eight
// bits runs a program that draws a picture, FRAMES times. Registers are numbers, memory and picture
// are strings that live to the end; a frame allocates an array and two strings. What is asked
// is that no layout costs time where the collector has nothing to do.

#include "objects.h"

enum { MEMORY = 65536, WIDTH = 256, HEIGHT = 240, STEPS_A_FRAME = 60000 };

static size_t frames;

// One frame: instructions are bytes of memory, what they mean is their lowest bits.
static uint64_t run(struct object *memory, struct object *picture, uint64_t seed) {
    uint32_t pc = (uint32_t)seed & (MEMORY - 1), a = 0, x = 0, carry = 0, dot = 0;
    for (size_t step = 0; step < STEPS_A_FRAME; step++) {
        uint8_t *bytes = (uint8_t *)bytes_of(memory);
        uint8_t code = bytes[pc], operand = bytes[(pc + 1) & (MEMORY - 1)];
        pc = (pc + 2) & (MEMORY - 1);
        switch (code & 7) {
        case 0:
            a = operand;
            break;
        case 1:
            a = bytes[(uint32_t)operand << 8 | x];
            break;
        case 2:
            bytes[0x200 | (operand & 0xff)] = (uint8_t)a;
            break;
        case 3:
            a += operand + carry;
            carry = a >> 8;
            a &= 0xff;
            break;
        case 4:
            x = (x + 1) & 0xff;
            break;
        case 5:
            a ^= operand;
            break;
        case 6:
            if (carry != 0)
                pc = (pc + (uint32_t)(int8_t)operand) & (MEMORY - 1);
            break;
        default:
            bytes_of(picture)[dot] = (char)(a ^ x);
            dot = dot + 1 == WIDTH * HEIGHT ? 0 : dot + 1;
        }
    }
    return a ^ (uint64_t)dot << 8;
}

static uint64_t work(void) {
    uint64_t random = stream(4), sum = 0;
    struct object *memory = object_make(STRING, MEMORY), *picture = object_make(STRING, WIDTH * HEIGHT);
    memory->count = MEMORY;
    picture->count = WIDTH * HEIGHT;
    memset(bytes_of(picture), 0, WIDTH * HEIGHT);
    for (size_t i = 0; i < MEMORY; i++)
        bytes_of(memory)[i] = (char)next_random(&random);
    for (size_t i = 0; i < frames; i++) {
        sum += run(memory, picture, i);
        struct object *line = array_new(2);
        push(line, substring(picture, i % HEIGHT * WIDTH, 16));
        push(line, string_new((const char *)&sum, sizeof sum));
        sum += string_hash(words_of(line)[0]) + line->count;
    }
    keep(memory);
    keep(picture);
    return sum;
}

int main(int argc, char **argv) {
    program_name = "quiet";
    settings_begin(argc, argv);
    hw_gc_options options = door_options();
    frames = setting("frames", 5000, 1, 10000000);
    begin();
    uint64_t sum = with_heap(&options, work);
    result_begin(sum);
    object_fields();
    result_end();
    return 0;
}
