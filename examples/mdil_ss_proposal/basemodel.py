"""The proposal's base model: ERFNet, trained as MDIL-SS trains it."""

from ianvs.testalgorithms.mdil_ss.basemodel import MDILSS


class ERFNet(MDILSS):
    """MDIL-SS (Garg et al., WACV 2022) under the name that the proposal gives it."""
