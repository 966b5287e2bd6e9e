"""python -m tfwire: the tfwire command."""

from tfwire.cli import main

raise SystemExit(main())
