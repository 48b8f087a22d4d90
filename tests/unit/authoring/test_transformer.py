"""Transformers of the libraries and ours, taken apart: the same features, and changes where they should be only."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import linear

from ianvs.authoring import FrozenBody, LowRank, TorchLearner, resnet, transformer_of
from ianvs.authoring.backbones import library_model, split_head
from ianvs.authoring.networks import build_network, small_vit
from ianvs.authoring.weight_files import fit
from tests.errors import errors_of
from tests.marks import slow

SIDE, HEADS = 32, 2
SMALL = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": HEADS, "intermediate_size": 24}
PATCHES = {"image_size": SIDE, "patch_size": 8, "initializer_range": 0.5}


def of_timm(**options):
    timm = pytest.importorskip("timm")
    small = {"embed_dim": 16, "depth": 3, "num_heads": HEADS, "img_size": SIDE, "patch_size": 8}
    model = timm.create_model("vit_tiny_patch16_224", **small, **options)
    return model, lambda x: model.forward_head(model.forward_features(x), pre_logits=True)


def of_torchvision():
    from torchvision.models import VisionTransformer

    model = VisionTransformer(SIDE, 8, 3, HEADS, 16, 24)
    whole = copy.deepcopy(model)
    whole.heads = nn.Identity()
    return model, whole


def of_hugging_face(kind, features, **options):
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, kind.partition("For")[0].removesuffix("Model") + "Config")(**PATCHES, **options)
    model = getattr(transformers, kind)(config)
    return model, lambda x: features(model, x)


def bare(options):
    return {name: value for name, value in options.items() if name != "intermediate_size"} | {"mlp_ratio": 2}


def cls(part):
    return lambda model, x: getattr(model, part)(x).last_hidden_state[:, 0]


MADE = {
    "timm": of_timm,
    "timm, no head, registers, layer scale": lambda: of_timm(
        num_classes=0, reg_tokens=2, init_values=0.3, no_embed_class=True
    ),
    "timm, mean, norm of queries and keys": lambda: of_timm(global_pool="avg", qk_norm=True),
    "timm, norm before": lambda: of_timm(pre_norm=True),
    "torchvision": of_torchvision,
    "hf ViT": lambda: of_hugging_face("ViTForImageClassification", cls("vit"), **SMALL),
    "hf DeiT": lambda: of_hugging_face("DeiTForImageClassification", cls("deit"), **SMALL),
    "hf DINOv2": lambda: of_hugging_face(
        "Dinov2Model", lambda model, x: model(x).pooler_output, **bare(SMALL), layerscale_value=0.3
    ),
    "hf DINOv2, registers": lambda: of_hugging_face(
        "Dinov2WithRegistersModel", lambda model, x: model(x).pooler_output, **bare(SMALL), layerscale_value=0.3
    ),
    "hf CLIP": lambda: of_hugging_face(
        "CLIPVisionModel", lambda model, x: model(x).pooler_output, **SMALL, projection_dim=8
    ),
}
SPECIAL = {"timm, no head, registers, layer scale": 3, "hf DeiT": 2, "hf DINOv2, registers": 5}


@pytest.fixture(params=[*MADE, "ours"])
def made(request):
    """(transformer, the library's function for its features (B, F), how many tokens are no patches)."""
    torch.manual_seed(5)
    if request.param == "ours":
        network = small_vit((3, SIDE, SIDE), 5).eval()
        return transformer_of(network)[0], copy.deepcopy(network[0]), 1
    model, features = MADE[request.param]()
    with torch.no_grad():
        for parameter in model.parameters():  # nothing stays 0 or 1, or an error in it would not show
            parameter.add_(0.2 * torch.randn_like(parameter))
    if isinstance(features, nn.Module):
        features.load_state_dict(model.state_dict(), strict=False)
        features.eval()
    model.eval()
    body, _, width = split_head(model, request.param)
    transformer, _ = transformer_of(nn.Sequential(body, nn.Linear(width, 5)))
    return transformer, features, SPECIAL.get(request.param, 1)


def pictures(batch=2):
    return torch.rand(batch, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(3)) * 2 - 1


@torch.no_grad()
def test_features_are_the_librarys_own(made):
    transformer, features, special = made
    assert torch.equal(transformer(pictures()), features(pictures()))
    tokens = transformer.tokens(pictures())
    assert tokens.shape == (2, special + (SIDE // 8) ** 2 if transformer.width == 16 else 65, transformer.width)
    assert transformer.special == special
    assert {*transformer.state_dict()} == {f"model.{name}" for name in transformer.model.state_dict()}


@torch.no_grad()
def test_an_adapter_of_nothing_and_a_prefix_of_no_length_change_nothing(made):
    transformer, features, _ = made
    depth, width = len(transformer.blocks), transformer.width
    nothing = dict.fromkeys(range(depth), torch.zeros_like)
    empty = {i: (torch.empty(1, 0, width), torch.empty(2, 0, width)) for i in range(depth)}
    torch.testing.assert_close(transformer(pictures(), empty, nothing), features(pictures()), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_prefix_that_is_projected_from_tokens_acts_like_these_tokens(made):
    """What the library's own block makes of x behind further tokens, is what ours makes of x with their prefix."""
    transformer, _, _ = made
    block, x = transformer.blocks[1], transformer.tokens(pictures())
    more = torch.randn(2, 3, transformer.width)
    prefix = []
    for which in ("key", "value"):
        module, name, rows = block.weight_location(which)
        bias = getattr(module, name.replace("weight", "bias"))
        prefix.append(linear(block.norm(more), getattr(module, name)[rows or slice(None)], bias[rows or slice(None)]))
    if block.query_key_norms:  # timm's prefixes, as others', stand behind it
        prefix[0] = block.query_key_norms[1](prefix[0].unflatten(2, (HEADS, -1))).flatten(2)
    arguments = (None,) if len(block.projections) == 3 else ()
    expected = block.layer(torch.cat([more, x], 1), *arguments)[:, 3:]
    torch.testing.assert_close(block(x, tuple(prefix)), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_prefix_changes_only_what_comes_after_it(made):
    transformer, _, _ = made
    seen = {}
    for key, prefixes in (
        ("plain", {}),
        ("prefixed", {1: (torch.randn(1, 2, transformer.width), torch.randn(2, 2, transformer.width))}),
    ):
        inputs = seen.setdefault(key, [])
        hooks = [
            block.norm.register_forward_hook(lambda layer, given, out, to=inputs: to.append(given[0].clone()))
            for block in transformer.blocks
        ]
        transformer(pictures(), prefixes)
        for hook in hooks:
            hook.remove()
    equal = [torch.equal(a, b) for a, b in zip(*seen.values(), strict=True)]
    assert equal == [True, True] + [False] * (len(transformer.blocks) - 2)


@torch.no_grad()
def test_an_adapter_is_added_to_the_output_and_sees_what_enters_the_second_half(made):
    transformer, _, _ = made
    block, x = transformer.blocks[0], transformer.tokens(pictures())
    entered = []
    hook = block.norm2.register_forward_pre_hook(lambda layer, given: entered.append(given[0]))
    plain = block(x)
    hook.remove()
    adapter = nn.Linear(transformer.width, transformer.width)
    torch.testing.assert_close(block(x, adapter=adapter), plain + adapter(entered[0]), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_low_rank_updates_begin_at_nothing_and_change_only_their_rows(made):
    transformer, _, _ = made
    frozen, block, before = FrozenBody(transformer), transformer.blocks[1], transformer(pictures())
    module, name, rows = block.weight_location("value")
    weight = getattr(module, name).clone()
    change = LowRank.at(module, name, 2, rows=rows)
    if not isinstance(transformer.model, type(small_vit((3, 8, 8), 2)[0])):
        assert torch.equal(frozen(pictures()), before)
    torch.testing.assert_close(frozen(pictures()), before)  # torch takes another path through our blocks
    assert sum(p.numel() for p in frozen.parameters() if p.requires_grad) == 2 * 2 * transformer.width
    change.B.normal_()
    moved = getattr(module, name) - weight
    assert bool((moved[rows or slice(None)] != 0).any(1).all())
    moved[rows or slice(None)] = 0
    assert not moved.any()
    assert not torch.allclose(frozen(pictures()), before, atol=1e-3)


@torch.no_grad()
def test_the_inputs_of_attention_are_what_the_projections_are_given(made):
    transformer, _, _ = made
    found = list(transformer.attention_inputs(transformer.tokens(pictures())))
    given = []
    for block in transformer.blocks:
        first = block.projections[0]
        first.register_forward_pre_hook(lambda layer, args, to=given: to.append(args[0]))
    transformer(pictures())
    if given:  # torch's own attention, as torchvision's and ours, keeps its projection to itself
        assert all(torch.equal(a, b) for a, b in zip(found, given, strict=True))
    assert len(found) == len(transformer.blocks)


@torch.no_grad()
def test_the_position_of_the_class_token_is_what_it_gets_beside_itself():
    model, _ = of_timm()
    transformer, _ = transformer_of(nn.Sequential(split_head(model, "timm")[0], nn.Linear(16, 5)))
    expected = transformer.tokens(pictures())[:, :1] - model.cls_token
    torch.testing.assert_close(transformer.class_position().expand(2, -1, -1), expected)
    model, _ = of_timm(no_embed_class=True)
    transformer, _ = transformer_of(nn.Sequential(split_head(model, "timm")[0], nn.Linear(16, 5)))
    assert not transformer.class_position().any()


@torch.no_grad()
def test_pooling_takes_the_class_token_or_the_mean_of_the_patches(made):
    transformer, _, special = made
    encoded = transformer.encode(transformer.tokens(pictures()))
    transformer.features = "cls"
    first = transformer.pooled(encoded)
    transformer.features = "mean"
    mean = transformer.pooled(encoded)
    after = getattr(transformer.model, "fc_norm", nn.Identity())
    torch.testing.assert_close(first, after(encoded[:, 0]))
    torch.testing.assert_close(mean, after(encoded[:, special:].mean(1)))


def test_pooling_is_an_option_of_a_learner():
    network = TorchLearner(network="vit", pooling="mean").build_network((3, 16, 16), 4).eval()
    x = torch.rand(2, 3, 16, 16)
    vit = network[0].model
    torch.testing.assert_close(network[0](x), vit.encode(vit.tokens(x))[:, 1:].mean(1))
    assert errors_of(lambda: TorchLearner(network="vit", pooling="max").build_network((3, 16, 16), 4)) == [
        ("invalid-choice", "")
    ]


def test_a_copy_of_a_transformer_is_of_its_own(made):
    transformer, _, _ = made
    other = copy.deepcopy(transformer)
    parts = {*map(id, other.modules())}
    assert all(id(block.layer) in parts and id(block.norm) in parts for block in other.blocks)


def test_other_networks_are_refused_with_a_remedy():
    assert errors_of(transformer_of, resnet((3, 32, 32), 5)) == [("refused-arguments", "")]
    model, _ = of_timm(block_fn=pytest.importorskip("timm").models.vision_transformer.ResPostBlock)
    assert errors_of(transformer_of, nn.Sequential(split_head(model, "timm")[0], nn.Linear(16, 5))) == [
        ("refused-arguments", "")
    ]
    transformer, _ = transformer_of(small_vit((1, 8, 8), 2))
    assert errors_of(transformer.encode, torch.zeros(1, 5, 96), adapters={4: nn.Identity()}) == [
        ("refused-arguments", "")
    ]


class OnTokens(TorchLearner):
    def build_network(self, input_shape, num_classes):
        return nn.Sequential(*transformer_of(super().build_network(input_shape, num_classes)))


def test_validate_refuses_what_run_refuses_of_a_method_that_builds_its_own_network():
    facts = {"kind": "classification", "shape": (32, 32, 3), "num_classes": 4}
    assert errors_of(lambda: OnTokens(network="resnet18").check_exam(**facts)) == [("refused-arguments", "")]
    assert OnTokens(network="vit").check_exam(**facts) == ""


# Real layouts, by names and shapes alone.

LAYOUTS = [
    ("timm/vit_base_patch16_224", 224, 152, "head", "blocks.11.attn.qkv.weight", (2304, 768)),
    ("timm/vit_base_patch16_224.augreg_in21k", 224, 152, "head", "head.weight", (21843, 768)),
    ("timm/vit_small_patch14_dinov2", 518, 174, "", "blocks.0.ls1.gamma", (384,)),
    ("timm/vit_base_patch16_clip_224", 224, 152, "head", "norm_pre.weight", (768,)),
    ("vit_b_16", 224, 152, "heads.head", "encoder.layers.encoder_layer_11.self_attention.in_proj_weight", (2304, 768)),
]


@pytest.mark.parametrize(
    "name, side, tensors, head, sample, shape",
    [LAYOUTS[0], *(slow(*row) for row in LAYOUTS[1:])],
    ids=[row[0] for row in LAYOUTS],
)
def test_a_state_dict_in_the_real_layout_fits(name, side, tensors, head, sample, shape):
    if "/" in name:
        pytest.importorskip("timm")
    with torch.device("meta"):
        state = library_model(name, (side, side), False, trained=True).state_dict()
        assert state[sample].shape == shape
        said = []

        def fill(model, place, new):
            incompatible, filled = fit(model, state, "the file", without=place)
            said.extend([incompatible, place, len(filled)])

        network = build_network(name, (3, side, side), 5, fill=fill).eval()
        transformer, new = transformer_of(network)
        assert said[:2] == ["", head]
        assert len(state) - said[2] == (2 if head else 0)
        assert transformer(torch.empty(2, 3, side, side)).shape == (2, new.in_features)


@pytest.mark.slow
@pytest.mark.parametrize("name", [row[0] for row in LAYOUTS])
@torch.no_grad()
def test_a_transformer_in_its_real_size_has_the_librarys_features_and_changes_only_where_it_should(name, tmp_path):
    """Random weights, from a file in the library's layout; pictures of 224 x 224."""
    if "/" in name:
        pytest.importorskip("timm")
    torch.manual_seed(1)
    model = library_model(name, (224, 224), False, trained=True).eval()
    for parameter in model.parameters():  # nothing stays 0 or 1
        parameter.add_(0.01 * torch.randn_like(parameter))
    torch.save(model.state_dict(), tmp_path / "random.pt")
    learner = TorchLearner(network=name, weights=str(tmp_path / "random.pt"), picture_size=224)
    transformer, _ = transformer_of(learner.build_network((3, 224, 224), 5).eval())
    x = torch.rand(1, 3, 224, 224) * 2 - 1
    plain = transformer(x)
    assert torch.equal(plain, split_head(model, name)[0](x))
    tokens = transformer.tokens(x)
    inputs = list(transformer.attention_inputs(tokens))
    last, entered = len(transformer.blocks) - 1, []
    for block in transformer.blocks:
        block.norm.register_forward_hook(lambda layer, given, out: entered.append(out))
    prefixed = transformer(x, {last: (torch.randn(1, 5, transformer.width), torch.randn(1, 5, transformer.width))})
    assert all(torch.equal(a, b) for a, b in zip(inputs, entered, strict=True))
    assert not torch.allclose(prefixed, plain, atol=1e-3)
    module, place, rows = transformer.blocks[last].weight_location("query")
    before, change = getattr(module, place).clone(), LowRank.at(module, place, 4, rows=rows)
    assert torch.equal(getattr(module, place), before)
    change.B.normal_()
    moved = (getattr(module, place) != before).any(1)
    assert moved[rows or slice(None)].all() and moved.sum() == transformer.width
    entered.clear()
    assert not torch.allclose(transformer(x), plain, atol=1e-3)
    assert all(torch.equal(a, b) for a, b in zip(inputs, entered, strict=True))


def test_positions_of_trained_weights_are_interpolated_for_pictures_of_another_size():
    pytest.importorskip("timm")
    with torch.device("meta"):
        network = build_network("timm/vit_small_patch14_dinov2", (3, 224, 224), 5, fill=lambda *given: None)
        transformer, _ = transformer_of(network.eval())
        assert transformer.tokens(torch.empty(2, 3, 224, 224)).shape == (2, 1 + 16 * 16, 384)
        assert network(torch.empty(2, 3, 224, 224)).shape == (2, 5)
