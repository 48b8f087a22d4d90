"""First files of somebody who begins: `ianvs new`."""

from ianvs.cli.beginning.copied_job import copied_job
from ianvs.cli.beginning.from_template import KINDS, from_template
from ianvs.cli.beginning.written import write_new

__all__ = ["KINDS", "copied_job", "from_template", "write_new"]
