# Reads a file through a memory map, and drops it from the page cache.
import mmap, os, sys
every, pages = int(sys.argv[1]), 0
file = os.open('data', os.O_RDONLY)
size = os.fstat(file).st_size
while True:
    mapped = mmap.mmap(file, size, prot=mmap.PROT_READ)
    for place in range(0, size, 4096):
        mapped[place]
        pages += 1
        if pages % every == 0: os.write(1, b'%12d pages\n' % pages)
    mapped.close()
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
