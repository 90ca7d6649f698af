/*
 * Preloaded into a program that reads with pread. $COLD_CALL_READS says what a read of 4 KiB is:
 *
 *   0  nothing at all, which succeeds: how long is the program's own code between two reads when no read is between?
 *   1  a read: and when one is?
 *   2  a read and one more, at a random place of the same file, into the same buffer: the first finds the caches and branch
 *      predictors as the program's own code left them, the second as a read left them.
 *
 * What is known so far is written to $COLD_CALL_OUT every 4,096 reads, because a program may end without running destructors
 * (fio's jobs do). Cycles are the TSC's. lfence waits for what is outstanding, so that a program's own cache misses are not
 * counted as the call's. One thread reads, in every program that this is preloaded into.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

enum { BLOCK = 4096, MOST = 2, REPORT = 4096 };
/* Longer is an interrupt or a theft of the hypervisor: 15 µs at 2.6 GHz. A short interrupt stays in. */
static const uint64_t TOO_LONG = 40000;

static uint64_t now(void)
{
	_mm_lfence();
	uint64_t cycles = __rdtsc();
	_mm_lfence();
	return cycles;
}

static void report(uint64_t between, const uint64_t *reads, uint64_t kept, uint64_t all)
{
	const char *path = getenv("COLD_CALL_OUT");
	int out = path ? open(path, O_WRONLY | O_CREAT, 0600) : -1;
	double count = kept ? kept : 1;
	char line[160];
	int length = snprintf(line, sizeof line, "%20.2f %20.2f %20.2f %20.6f\n", between / count, reads[0] / count,
			      reads[1] / count, 1.0 - (double)kept / all);
	if (out < 0)
		return;
	if (pwrite(out, line, length, 0) != length)
		unlink(path);
	close(out);
}

ssize_t pread(int file, void *buffer, size_t count, off_t offset)
{
	static uint64_t between, reads[MOST], kept, all, ended, blocks, random = 88172645463325252u;
	static int wanted;
	uint64_t began = now(), times[MOST] = { 0 }, spoilt;
	ssize_t result = BLOCK;

	if (count != BLOCK)
		return syscall(SYS_pread64, file, buffer, count, offset);
	if (!blocks) {
		struct stat facts;
		const char *text = getenv("COLD_CALL_READS");
		blocks = fstat(file, &facts) || facts.st_size < BLOCK ? 1 : facts.st_size / BLOCK;
		wanted = text ? atoi(text) : 1;
		wanted = wanted < 0 ? 0 : wanted > MOST ? MOST : wanted;
	}
	spoilt = ended == 0 || began - ended > TOO_LONG;
	for (int read = 0; read < wanted; read++) {
		uint64_t begin = now();
		result = syscall(SYS_pread64, file, buffer, count, offset);
		times[read] = now() - begin;
		spoilt |= result != BLOCK || times[read] > TOO_LONG;
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		offset = random % blocks * BLOCK;
	}
	all++;
	if (!spoilt) {
		kept++;
		between += began - ended;
		for (int read = 0; read < wanted; read++)
			reads[read] += times[read];
	}
	if (all % REPORT == 0)
		report(between, reads, kept, all);
	/* What follows a report is colder than usual, and is left out. */
	ended = all % REPORT ? now() : 0;
	return result;
}

ssize_t pread64(int file, void *buffer, size_t count, off_t offset)
{
	return pread(file, buffer, count, offset);
}
