# stress-ng's stressors that allocate, map, fork or make threads, briefly and verified. The others
# ask the kernel, not malloc.

suite_stress-ng() {
    local name options=(--verify --timeout 5s --no-rand-seed --metrics-brief)
    declare -A stressors=(
        [malloc]='--malloc 2 --malloc-bytes 64M'
        [malloc-pthreads]='--malloc 1 --malloc-bytes 64M --malloc-pthreads 4'
        [malloc-touch]='--malloc 2 --malloc-bytes 64M --malloc-touch'
        [malloc-zerofree]='--malloc 2 --malloc-bytes 64M --malloc-zerofree'
        [bigheap]='--bigheap 1 --bigheap-growth 1M --bigheap-ops 200'
        [brk]='--brk 1 --brk-ops 20000'
        [mmap]='--mmap 1 --mmap-bytes 64M'
        [fork]='--fork 2' [vfork]='--vfork 2' [pthread]='--pthread 2'
        [tree]='--tree 1' [list]='--list 1' [str]='--str 1' [qsort]='--qsort 1' [hsearch]='--hsearch 1'
    )
    for name in "${!stressors[@]}"; do
        add "$name" 90 "exec stress-ng ${stressors[$name]} ${options[*]}"
    done
}
