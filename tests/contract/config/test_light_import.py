"""Reading YAML needs no heavy package."""

import subprocess
import sys


def test_configuration_loads_no_heavy_package():
    code = "import sys, ianvs.config; print({'torch', 'pandas', 'numpy', 'sklearn', 'PIL'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
