"""What every package needs: errors, arguments, byte strings, threads, the native module."""
