"""`python -m ianvs` is the command `ianvs`."""

from ianvs.cli import main

raise SystemExit(main())
