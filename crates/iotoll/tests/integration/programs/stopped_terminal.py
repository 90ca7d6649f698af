import os, pty, subprocess, sys, termios
os.environ['TERM'] = 'xterm'
terminal, end = pty.openpty()
termios.tcflow(end, termios.TCOOFF)
sys.exit(subprocess.run(sys.argv[1:], stderr=end, timeout=60).returncode)
