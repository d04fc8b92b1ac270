"""FP4 quantisation in plain PyTorch, to compare `quantiser.cu` with: the same arithmetic, written another way."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of e2m1, by code


def quantised(
    x: torch.Tensor, global_scale: torch.Tensor, vector: int, ue8m0: bool, swizzled: bool, small_tiles: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Packed values (rows, columns / 2) and all bytes of the scales (flat), both uint8, of ``x`` (rows, columns)."""
    rows, columns = x.shape
    blocks = x.float().view(rows, columns // vector, vector)
    wanted = global_scale.float() * (blocks.abs().amax(-1) / torch.full((), 6.0, device=x.device))
    codes, scales = power_of_two(wanted) if ue8m0 else e4m3(wanted)
    factors = torch.where(scales > 0, global_scale.float() / scales, torch.zeros_like(scales))
    values = e2m1(blocks * factors[..., None]).view(rows, columns // 2, 2)
    return values[..., 0] | values[..., 1] << 4, swizzle(
        codes, 8 if small_tiles else 128
    ) if swizzled else codes.flatten()


def e4m3(scales: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rounded = scales.clamp(max=448.0).to(torch.float8_e4m3fn)
    return rounded.view(torch.uint8), rounded.float()


def power_of_two(scales: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The next power of two: its exponent with a bias of 127, and its value."""
    mantissa, exponent = torch.frexp(scales)  # scales = mantissa * 2 ** exponent, 0.5 <= mantissa < 1
    code = (exponent - (mantissa == 0.5).int() + 127).clamp(0, 254)
    code = torch.where(scales == 0, torch.zeros_like(code), code)
    return code.to(torch.uint8), torch.where(code == 0, 0.0, torch.exp2((code - 127).double()).float())


def e2m1(x: torch.Tensor) -> torch.Tensor:
    """Codes to nearest; halfway, the even code."""
    magnitudes = torch.tensor(MAGNITUDES, device=x.device)
    middles = (magnitudes[1:] + magnitudes[:-1]) / 2
    below, upto = torch.bucketize(x.abs(), middles), torch.bucketize(x.abs(), middles, right=True)
    code = torch.where(below % 2 == 0, below, upto)
    return (code | torch.where((x < 0) & (code > 0), 8, 0)).to(torch.uint8)


def swizzle(codes: torch.Tensor, tile: int) -> torch.Tensor:
    """Tiles of ``tile`` rows by 4 blocks; in the large ones, rows 32 apart lie next to each other."""
    rows, blocks = codes.shape
    padded = pad(codes, (0, -blocks % 4, 0, -rows % tile))
    if tile == 8:
        return padded.view(-1, 8, padded.shape[1] // 4, 4).permute(0, 2, 1, 3).flatten()
    return padded.view(-1, 4, 32, padded.shape[1] // 4, 4).permute(0, 3, 2, 1, 4).flatten()
