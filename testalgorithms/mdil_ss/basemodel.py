"""Multi-domain incremental learning for semantic segmentation."""

from ianvs.base.errors import require_known
from ianvs.testalgorithms.mdil_ss.losses import DISTILLATIONS, old_domain_losses
from ianvs.testalgorithms.mdil_ss.protocol import frozen_copy, initialise_domain, training_mode
from ianvs.testalgorithms.segmentation import SegmentationLearner


class MDILSS(SegmentationLearner):
    """MDIL-SS (Garg, Saluja, Balasubramanian, Arora, Subramanian, Jawahar; WACV 2022, arXiv 2110.12205).

    Domains share the encoder's convolutions W_s. Each has W_t for itself: parallel adapters and batch normalisations in
    the encoder, and a decoder. Round t starts W_t from W_(t-1), freezes all earlier ones, and goes down
    L = L_CE(x, t) + kd_weight sum over j < t of L_KLD(student(x, j), teacher(x, j)),
    W_t at learning_rate and W_s at shared_learning_rate; the teacher is the network from before the round.

    Where the authors' code departs from the paper, a switch has the paper's way as its default:
    kd: "kl", or "reference_quirk", softmax where a logarithm of it is due.
    old_statistics_drift: batch normalisations of old branches take up the new domain's statistics during distillation.
    teacher_mode: "eval", or "train", the teacher's dropout and batch statistics stay on (third step of the code).
    optimizer_steps: 1, on the sum; or 2 per batch, down L_CE and then down L_KLD at the new weights (third step), which
    moves W_s alone; in the authors' PyTorch, whose zero_grad kept zeros, W_t moved on by its momentum.
    copy_running_statistics: whether W_t also starts with the encoder's running statistics of W_(t-1). In the code not.
    shift_border="reference_quirk" is in mdil_ss.augmentation.
    """

    adapters = True

    def __init__(
        self,
        *,
        shared_learning_rate=5e-6,
        kd_weight=0.1,
        kd="kl",
        old_statistics_drift=False,
        teacher_mode="eval",
        optimizer_steps=1,
        copy_running_statistics=False,
        **training,
    ):
        super().__init__(shared_learning_rate=shared_learning_rate, **training)
        require_known("kd", kd, DISTILLATIONS)
        require_known("teacher_mode", teacher_mode, ("eval", "train"))
        require_known("optimizer_steps", optimizer_steps, (1, 2))
        self.kd_weight, self.kd = kd_weight, kd
        self.old_statistics_drift, self.teacher_mode = old_statistics_drift, teacher_mode
        self.optimizer_steps, self.copy_running_statistics = int(optimizer_steps), copy_running_statistics

    def start_domain(self, domain):
        if domain and self.initialise:
            statistics = self.copy_running_statistics
            initialise_domain(self.network, domain, domain - 1, copy_running_statistics=statistics)

    def training(self, domain):
        return training_mode(self.network, domain, old_statistics_drift=self.old_statistics_drift)

    def before_round(self, data):
        self.old = [domain for domain in range(len(self.domains)) if domain != data.domain] if self.kd_weight else []
        self.teacher = self.as_called(frozen_copy(self.network, training=self.teacher_mode == "train"))

    def step(self, batch):
        if self.optimizer_steps == 1:
            self.descend(self.losses(batch))
            return
        self.descend([self.cross_entropy(batch)])
        if self.old:
            self.descend(self.distillation(batch.x))

    def losses(self, batch):
        yield self.cross_entropy(batch)
        yield from self.distillation(batch.x)

    def distillation(self, x):
        """Yield kd_weight L_KLD of each earlier domain."""
        for loss in old_domain_losses(self.logits, self.teacher_logits, x, self.old, self.kd):
            yield self.kd_weight * loss

    def teacher_logits(self, x, domain):
        """Return the logits of the network from before the round."""
        return self.logits(x, domain, self.teacher)

    def after_round(self, data):
        del self.teacher


class ERFNet(MDILSS):
    """MDIL-SS under the name of its network, as the files of the MDIL-SS proposal call it."""
