"""Glossaries to measure with: of the fields of ``bench.clean_text``, and large ones."""

from __future__ import annotations

import random
from pathlib import Path

from pipeline.glossary_file import load_glossary
from pipeline.postprocess.terms import Glossary, Term

_TERMS = {
    "machine learning": """
        神经网络 卷积 卷积层 损失函数 梯度下降 反向传播 学习率 激活函数 过拟合 欠拟合 权重 偏置 正则化 批量
        小批量 池化 汇聚层
        循环神经网络 注意力机制 编码器 解码器 词元 嵌入 张量 导数 梯度 偏导数 链式法则 交叉熵 训练集 验证集
        测试集 泛化 超参数
        感受野 残差块 隐状态 词表 困惑度 向量 矩阵 标量 范数 方差 期望 先验 似然
    """,
    "algorithms": """
        动态规划 线段树 树状数组 并查集 最短路 最小生成树 拓扑排序 二分图 匈牙利算法 网络流 最大流 最小割
        深度优先搜索
        广度优先搜索 状态压缩 前缀和 差分 单调栈 单调队列 哈希 字典树 后缀数组 后缀自动机 快速幂 逆元 素数
        筛法 欧拉函数
        莫比乌斯反演 凸包 叉积 点积 平衡树 伸展树 树链剖分 强连通分量 割点 复杂度 贪心 递归 分治 同余 剩余系
        多项式 生成函数 卷积
    """,
    "chemistry": """
        氧化还原反应 电离 电解质 摩尔质量 阿伏加德罗常数 离子方程式 化合价 元素周期律 共价键 离子键 金属键
        官能团 烷烃 烯烃
        炔烃 苯环 酯化反应 水解 催化剂 化学平衡 平衡常数 勒夏特列原理 焓变 熵 活化能 缓冲溶液 滴定 指示剂
        沉淀 溶度积 原电池
        电解池 阳极 阴极 晶胞 杂化轨道 同分异构体 酚酞
    """,
    "history": """
        分封制 宗法制 郡县制 察举制 科举制 均田制 租庸调制 两税法 募兵制 行省 内阁 军机处 洋务运动 戊戌变法
        辛亥革命 新文化运动
        五四运动 鸦片战争 南京条约 马关条约 辛丑条约 太平天国 义和团 文艺复兴 宗教改革 启蒙运动 工业革命
        君主立宪制
    """,
    "economics": """
        边际效用 机会成本 供给曲线 需求曲线 价格弹性 消费者剩余 生产者剩余 无差异曲线 预算约束 完全竞争
        寡头垄断 博弈论 纳什均衡
        外部性 公共物品 逆向选择 道德风险 通货膨胀 流动性陷阱 乘数效应 财政政策 货币政策 汇率 国际收支
        比较优势 基尼系数 洛伦兹曲线
    """,
}


def field_glossary(name: str) -> Glossary:
    """The glossary of a field."""
    return Glossary(tuple(Term(term, (), "zh") for term in _TERMS[name].split()))


FIELDS = tuple(_TERMS)


def lecture_glossaries(folder: Path) -> dict[str, Glossary]:
    """Those that lie beside the lectures, by file name."""
    return {path.stem: load_glossary(path) for path in sorted(folder.glob("glossary*.csv"))}


def nouns(count: int, seed: int = 5) -> Glossary:
    """So many nouns of jieba's dictionary, drawn at random: a glossary without a subject."""
    import jieba

    with jieba.get_dict_file() as lines:
        rows = [line.decode().split() for line in lines]
    found = sorted({word for word, _, tag in rows if tag in ("n", "nz") and 2 <= len(word) <= 8})
    drawn = random.Random(seed).sample(found, count)
    return Glossary(tuple(Term(word, (), "zh") for word in sorted(drawn)))
