# Refuses io_uring_setup(2), number 425 on every architecture, with errno $1, then runs the rest.
import ctypes, os, struct, sys
refuse = 0x00050000 | int(sys.argv[1])
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, refuse), (0x06, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter):
    sys.exit(99)
os.execv(sys.argv[2], sys.argv[2:])
