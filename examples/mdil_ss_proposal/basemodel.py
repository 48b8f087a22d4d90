"""The proposal's base model: ERFNet, trained as MDIL-SS trains it (testalgorithms/mdil_ss/basemodel.py)."""

from ianvs.testalgorithms.mdil_ss.basemodel import ERFNet

__all__ = ["ERFNet"]
