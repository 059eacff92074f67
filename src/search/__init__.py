"""What sentence vectors are good for: nearest question, mining, clusters, new FAQs, export.

from src.search import Matcher
matcher = Matcher.load("small")
vectors = matcher.encode(["感冒可以吃海鲜吗", "得了感冒能吃海鲜吗"])
probabilities = matcher.score([("感冒可以吃海鲜吗", "得了感冒能吃海鲜吗")])
hits = matcher.search("感冒能不能吃虾", ["感冒可以吃海鲜吗", "哮喘会遗传吗"], top=1)
"""

from .matcher import Hit, Matcher

__all__ = ["Hit", "Matcher"]
