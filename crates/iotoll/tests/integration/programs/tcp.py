# Sends messages by send(), which task accounting does not see, to a child that receives them: SIZE, EVERY. It prints a line
# after each EVERY messages.
import socket, sys, os
size, every, sent = int(sys.argv[1]), int(sys.argv[2]), 0
listening = socket.socket()
listening.bind(('127.0.0.1', 0))
listening.listen(1)
if os.fork() == 0:
    receiving = socket.create_connection(listening.getsockname())
    while receiving.recv(1 << 20): pass
    os._exit(0)
sending, _ = listening.accept()
while True:
    sending.sendall(b'x' * size)
    sent += 1
    if sent % every == 0: os.write(1, b'%12d messages\n' % sent)
