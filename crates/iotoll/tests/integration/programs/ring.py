# Reads and writes 64 KiB; after each EVERY reads, submits a no-op to a ring of io_uring. Ends with status 77 without io_uring.
import ctypes, mmap, os, struct, sys
kernel, every, done = ctypes.CDLL(None), int(sys.argv[1]), 0
setup, enter, parameters = 425, 426, ctypes.create_string_buffer(120)
ring = kernel.syscall(setup, 4, parameters)
if ring < 0: sys.exit(77)
_, tail, _, _, _, _, array, *_ = struct.unpack_from('10I', parameters, 40)
completed_head, completed_tail, *_ = struct.unpack_from('10I', parameters, 80)
queues = mmap.mmap(ring, 4096, mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=0)
entries = mmap.mmap(ring, 4096, mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=0x10000000)
zero, null = os.open('/dev/zero', os.O_RDONLY), os.open('/dev/null', os.O_WRONLY)
while True:
    os.write(null, os.read(zero, 65536))
    done += 1
    if done % every == 0:
        at, = struct.unpack_from('I', queues, tail)
        struct.pack_into('I', queues, array + 4 * (at % 4), 0)
        struct.pack_into('I', queues, tail, at + 1)
        kernel.syscall(enter, ring, 1, 1, 1, None, 0)
        struct.pack_into('I', queues, completed_head, struct.unpack_from('I', queues, completed_tail)[0])
