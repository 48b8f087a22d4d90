"""Routers of joint inference: which samples the cloud has to answer."""
