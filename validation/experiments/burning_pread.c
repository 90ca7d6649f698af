/* Preloaded into an unmodified program: pread spins on the time-stamp counter until BURN_CYCLES have passed, as engine spin does, and notes
   in the file BURN_NOTES how many passed really, because a loop ends a part of a turn late, and how often. A burning that was interrupted
   or frozen is not noted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <x86intrin.h>

static unsigned long long cycles;
static unsigned long long nowhere[2];
static unsigned long long *notes = nowhere;
static ssize_t (*next)(int, void *, size_t, off64_t);

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("BURN_CYCLES"), *path = getenv("BURN_NOTES");
    cycles = text ? strtoull(text, 0, 10) : 0;
    next = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
    int file = path ? open(path, O_RDWR) : -1;
    void *mapped = mmap(0, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        notes = mapped;
}

ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset) {
    _mm_lfence();
    unsigned long long begun = __rdtsc();
    while (__rdtsc() - begun < cycles) {
    }
    /* After the branch that leaves the loop, which the processor predicts for some lengths only. */
    _mm_lfence();
    unsigned long long passed = __rdtsc() - begun;
    if (passed < cycles + 1000) {
        notes[0] += passed;
        notes[1] += 1;
    }
    return next(fd, buffer, size, offset);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset) { return pread64(fd, buffer, size, offset); }
