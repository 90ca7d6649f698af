# Writes blocks, each filled with the number of the write, and prints each confirmation: `w` written, `d` durable by
# FUA, `f` everything so far by a flush.
import nbd, struct, sys
uri, n = sys.argv[1], int(sys.argv[2])
h = nbd.NBD()
h.connect_uri(uri)
while True:
    n += 1
    fua = n % 17 == 0
    h.pwrite(struct.pack("<Q", n) * 512, n % 64 * 4096, nbd.CMD_FLAG_FUA if fua else 0)
    print("d" if fua else "w", n, flush=True)
    if n % 101 == 0:
        h.flush()
        print("f", n, flush=True)
