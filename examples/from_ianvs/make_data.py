"""Writes scikit-learn's digits as images, with index files as KubeEdge Ianvs reads them. Offline, in a second."""

from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits

HERE = Path(__file__).parent / "dataset"
PARTS = {"train": range(1200), "test": range(1200, 1797)}


def main() -> None:
    digits = load_digits()
    pictures = (digits.images / 16 * 255).astype("uint8")
    for part, numbers in PARTS.items():
        (HERE / part).mkdir(parents=True, exist_ok=True)
        lines = []
        for number in numbers:
            Image.fromarray(pictures[number]).save(HERE / part / f"{number}.png")
            lines.append(f"{part}/{number}.png {digits.target[number]}\n")
        (HERE / f"{part}.txt").write_text("".join(lines))
    print(f"wrote {len(digits.target)} pictures and two index files to {HERE}")


if __name__ == "__main__":
    main()
