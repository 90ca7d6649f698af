# Sends datagrams that nobody receives: SIZE, EVERY. It prints as tcp.py does.
import socket, sys, os
size, every, sent = int(sys.argv[1]), int(sys.argv[2]), 0
sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    sending.sendto(b'x' * size, ('127.0.0.1', 9))
    sent += 1
    if sent % every == 0: os.write(1, b'%12d messages\n' % sent)
