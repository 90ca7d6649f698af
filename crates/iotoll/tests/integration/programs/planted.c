// Locked increments in one function, the same without a lock in another, for as many milliseconds as the first argument says.
#include <stdlib.h>
#include <time.h>
static long shared, sum;
__attribute__((noinline)) static void planted_lock(void) {
    for (int i = 0; i < 40; i++) __asm__ volatile("lock incq %0" : "+m"(shared));
}
__attribute__((noinline)) static void planted_adds(void) {
    for (int i = 0; i < 40; i++) __asm__ volatile("incq %0" : "+m"(sum));
}
int main(int count, char **words) {
    struct timespec begin, now;
    long millis = count > 1 ? atol(words[1]) : 3000;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 1000; i++) { planted_lock(); planted_adds(); }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < millis);
    return 0;
}
