// Calls a function of a library, and code that it makes in its memory and names as JVMs and Node.js do: a loop.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
extern void planted_callee(void);
static const unsigned char loop[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3}; /* dec %rdi; jnz; ret */
int main(void) {
    char path[64];
    struct timespec begin, now;
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code + 256, loop, sizeof loop);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %x planted made code\n", (long)code + 256, (int)sizeof loop);
    fclose(map);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        ((void (*)(long))(code + 256))(1000000);
        for (int i = 0; i < 100000; i++) planted_callee();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < 3);
    unlink(path);
    return 0;
}
