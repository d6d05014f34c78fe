/*
 * The memory that a process has lost so far, for listeners of test frameworks in C++.
 *
 * The listener asks the library that `heapwright check` preloads. A program links nothing for it
 * (before glibc 2.34: -ldl). Without that library nothing is known, and listeners do nothing.
 */
#ifndef HEAPWRIGHT_LOST_H
#define HEAPWRIGHT_LOST_H

#include <dlfcn.h>
#include <heapwright.h>
#include <unistd.h>

#include <string>

namespace heapwright {

struct Lost {
    bool known = false;
    unsigned long long blocks = 0, bytes = 0;
    /* The number of this leak check in the process's record, if no other code makes leak checks. */
    unsigned check = 0;
};

/* Makes a leak check. */
inline Lost lost() {
    static unsigned checks = 0;
    using Check = size_t (*)(hw_leak_check *, size_t);
    static const Check check = reinterpret_cast<Check>(dlsym(RTLD_DEFAULT, "hw_check_leaks"));
    hw_leak_check found = {};
    Lost now;
    if (check && check(&found, sizeof found)) {
        now.known = true;
        now.blocks = found.definite.blocks + found.indirect.blocks;
        now.bytes = found.definite.bytes + found.indirect.bytes;
        now.check = ++checks;
    }
    return now;
}

/* Text about the memory that was lost between two checks, and the command that shows the stacks.
   Empty if nothing was lost. */
inline std::string describe(const Lost &before, const Lost &after) {
    if (!before.known || !after.known || after.blocks <= before.blocks)
        return "";
    const unsigned long long blocks = after.blocks - before.blocks;
    const std::string record = "record." + std::to_string(getpid()) + "@";
    return "heapwright: " + std::to_string(after.bytes - before.bytes) + " bytes in " + std::to_string(blocks) +
           (blocks == 1 ? " block are lost" : " blocks are lost") + "; stacks: heapwright diff " + record +
           std::to_string(before.check) + " " + record + std::to_string(after.check);
}

}  // namespace heapwright

#endif
