/*
 * pread whose system call instruction lies at a chosen place of a page, because what a system call costs depends on it. The return
 * address, which is the first instruction that runs after the kernel, is RETURN + 4 * place bytes behind the start of a page.
 *
 * Built with -DPLACE=n it is a library to preload: libc's pread, at that place. Without, it is a program:
 *
 *   placed-pread FILE SECONDS
 *
 * reads blocks of 4 KiB of FILE in random order in PLACES loops, each the least that a program can do: in turns of READS reads, in an order
 * drawn anew each time round. It prints the reads a second of each loop.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

#ifdef PLACE

ssize_t pread64(int file, void *buffer, size_t length, off_t offset)
{
	long outcome;
	register long fourth asm("r10") = offset;
	/* 19 bytes stand before the instruction in the loops too; it takes 2. */
	asm volatile(".p2align 12\n .nops 19 + 4 * " TEXT(PLACE) "\n syscall"
		     : "=a"(outcome)
		     : "0"(17L), "D"((long)file), "S"(buffer), "d"(length), "r"(fourth)
		     : "rcx", "r11", "memory");
	if (outcome < 0) {
		errno = -outcome;
		return -1;
	}
	return outcome;
}

ssize_t pread(int, void *, size_t, off_t) __attribute__((alias("pread64")));

#else

enum { BLOCK = 4096, PLACES = 16, READS = 4096 };

/* Registers are chosen so that each instruction has the same length in every loop: 3 + 3 + 3 + 5 + 5 bytes before the system call. */
#define LOOP(place)                                                                                                      \
	__attribute__((noinline)) static long loop_##place(int file, char *buffer, const uint64_t *offset, long count)    \
	{                                                                                                                \
		long bytes = 0;                                                                                          \
		asm volatile(".p2align 12\n .nops 4 * " #place " + 64\n"                                                 \
			     "1: mov (%%rbx), %%r10\n mov %[file], %%rdi\n mov %[buffer], %%rsi\n"                        \
			     " mov $4096, %%edx\n mov $17, %%eax\n syscall\n"                                            \
			     " add %%rax, %[bytes]\n add $8, %%rbx\n dec %[count]\n jnz 1b"                              \
			     : [bytes] "+r"(bytes), "+b"(offset), [count] "+r"(count)                                    \
			     : [file] "r"((long)file), [buffer] "r"(buffer)                                              \
			     : "rax", "rcx", "rdx", "rsi", "rdi", "r10", "r11", "memory", "cc");                         \
		return bytes;                                                                                            \
	}

LOOP(0) LOOP(1) LOOP(2) LOOP(3) LOOP(4) LOOP(5) LOOP(6) LOOP(7)
LOOP(8) LOOP(9) LOOP(10) LOOP(11) LOOP(12) LOOP(13) LOOP(14) LOOP(15)

static long (*const loops[PLACES])(int, char *, const uint64_t *, long) = {
	loop_0, loop_1, loop_2,  loop_3,  loop_4,  loop_5,  loop_6,  loop_7,
	loop_8, loop_9, loop_10, loop_11, loop_12, loop_13, loop_14, loop_15,
};

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static uint64_t below(uint64_t bound)
{
	/* xorshift64* (Vigna, 2016); any seed but zero will do, as long as runs are alike. */
	static uint64_t state = 1;
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dULL >> 32) % bound;
}

static void shuffle(uint64_t *offsets, long blocks)
{
	for (long block = blocks - 1; block > 0; block--) {
		long other = below(block + 1);
		uint64_t offset = offsets[block];
		offsets[block] = offsets[other];
		offsets[other] = offset;
	}
}

int main(int count, char **words)
{
	int file = count == 3 ? open(words[1], O_RDONLY) : -1;
	off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
	long blocks = size / BLOCK;
	if (size < READS * BLOCK) {
		fprintf(stderr, "usage: placed-pread FILE SECONDS, and FILE holds %d blocks at least\n", READS);
		return 2;
	}
	uint64_t *offsets = malloc(blocks * sizeof(*offsets));
	char *buffer = aligned_alloc(BLOCK, BLOCK);
	if (!offsets || !buffer)
		return 1;
	for (long block = 0; block < blocks; block++)
		offsets[block] = block * BLOCK;
	double took[PLACES] = { 0 }, length = atof(words[2]), begin = now();
	long turns = 0, next = blocks;
	do {
		int order[PLACES];
		for (int place = 0; place < PLACES; place++) {
			int other = below(place + 1);
			order[place] = order[other];
			order[other] = place;
		}
		for (int turn = 0; turn < PLACES; turn++) {
			/* Every block once in each pass, as generators do. Passes of the same order would find less in a cache that is
			 * nearly as large as the file. */
			if (next + READS > blocks) {
				shuffle(offsets, blocks);
				next = 0;
			}
			double before = now();
			long bytes = loops[order[turn]](file, buffer, offsets + next, READS);
			took[order[turn]] += now() - before;
			next += READS;
			if (bytes != (long)READS * BLOCK) {
				fprintf(stderr, "placed-pread: a read was short or failed\n");
				return 1;
			}
		}
		turns++;
	} while (now() - begin < length);
	for (int place = 0; place < PLACES; place++)
		printf("%f\n", turns * READS / took[place]);
	return 0;
}

#endif
