"""A job's checkpoint directory: ``directory``, of ``records``, held by ``ownership``."""
