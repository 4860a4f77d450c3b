"""What Chinese numbers count in: units and measure words."""

from __future__ import annotations


def _listed(words: str) -> tuple[str, ...]:
    return tuple(sorted(words.split(), key=len, reverse=True))


UNITS = _listed(
    "毫米 厘米 分米 千米 公里 海里 微米 纳米 米 平方米 平方厘米 平方千米 立方米 立方厘米 公顷 毫克 千克 公斤 克 吨 "
    "毫升 升 毫秒 微秒 秒 秒钟 分钟 小时 摄氏度 度 牛顿 焦耳 千焦 瓦特 瓦 千瓦 千瓦时 伏特 伏 安培 毫安 欧姆 欧 "
    "赫兹 千赫 兆赫 帕斯卡 帕 "
    "摩尔 卡路里 大气压 光年 像素 字节 比特 兆 世纪 摄氏 美元 欧元 英镑 日元 港元 人民币"
)
"""Whatever number they have is a measure. A 度 or 克 that one of them is (一度) is not: see ``_SET_PHRASES``."""
MEASURE_WORDS = _listed(
    "个 位 名 人 条 张 本 件 只 头 匹 辆 架 台 座 栋 间 家 所 棵 株 朵 颗 粒 块 片 层 份 套 双 对 副 支 枝 "
    "根 把 道 题 页 章 节 行 列 段 句 字 遍 次 回 趟 场 届 期 号 班 组 队 排 年 天 日 月 周 岁 分 元 角 倍 "
    "步 种 类 项 点 级 阶 代 集 部 册 卷 首 篇 门 课 学时 课时 节课 例 户 亩 斤 两 里 寸 尺 丈 箱 包 瓶 杯 "
    "碗 盒 袋 桶 滴 笔 轮 样 艘 枚 顿 幅 面 圈 声 万 亿 年代 维 位数 边形 面体 进制"
)
"""What may follow a number inside one word of the dictionary (二十个, 十二月)."""
MEASURES = "|".join(sorted({*UNITS, *MEASURE_WORDS}, key=len, reverse=True))
"""All of them, as a regular expression."""
