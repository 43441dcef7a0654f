# "as" marks a name as public for editors, which do not all read `__all__`.
from . import datasets as datasets
from . import decision as decision
from . import io as io
from . import metrics as metrics
from .combiners.base import BaseCombiner as BaseCombiner
from .combiners.bgcm import BGCM as BGCM
from .combiners.bgcm import bgcm as bgcm
from .combiners.dawid_skene import DawidSkene as DawidSkene
from .combiners.dawid_skene import dawid_skene as dawid_skene
from .combiners.majority_vote import (
    MajorityVote as MajorityVote,
)
from .combiners.majority_vote import (
    majority_vote as majority_vote,
)
from .combiners.mlcm_a import MLCMa as MLCMa
from .combiners.mlcm_a import mlcm_a as mlcm_a
from .combiners.mlcm_r import MLCMr as MLCMr
from .combiners.mlcm_r import mlcm_r as mlcm_r
from .combiners.registry import (
    COMBINERS as COMBINERS,
)
from .combiners.registry import (
    register as register,
)
from .combiners.registry import (
    rescale as rescale,
)
from .combiners.weighted_consensus import (
    WeightedConsensus as WeightedConsensus,
)
from .combiners.weighted_consensus import (
    weighted_consensus as weighted_consensus,
)
from .consensus import Consensus as Consensus
from .consensus import combine as combine
from .decision.risk_control import decide as decide
from .ensemble import ConsensusClassifier as ConsensusClassifier
from .errors import InputError as InputError
from .errors import InputWarning as InputWarning
from .execution.dask import from_dask as from_dask
from .federated import privacy as privacy
from .federated.combiner_files import (
    load as load,
)
from .federated.combiner_files import (
    save as save,
)
from .federated.combiner_files import (
    save_statistics as save_statistics,
)
from .federated.merge import merge as merge
from .federated.merge import subtract as subtract
from .inspection.agreement import Agreement as Agreement
from .inspection.agreement import agreement as agreement
from .inspection.explanations import Explanation as Explanation
from .inspection.explanations import explain as explain
from .io import (
    from_dataset as from_dataset,
)
from .io import (
    from_long as from_long,
)
from .io import (
    read_predictions as read_predictions,
)
from .io import (
    scan_predictions as scan_predictions,
)
from .model_selection.comparison import (
    Comparison as Comparison,
)
from .model_selection.comparison import (
    compare as compare,
)
from .model_selection.comparison import (
    leave_out as leave_out,
)
from .model_selection.held_out_models import (
    compare_on_held_out_models as compare_on_held_out_models,
)
from .predictions.predictions import Predictions as Predictions
from .query_selection import ask as ask
from .streamed import write_consensus as write_consensus

__version__: str

__all__ = [
    "BGCM",
    "COMBINERS",
    "Agreement",
    "BaseCombiner",
    "Comparison",
    "Consensus",
    "ConsensusClassifier",
    "DawidSkene",
    "Explanation",
    "InputError",
    "InputWarning",
    "MLCMa",
    "MLCMr",
    "MajorityVote",
    "Predictions",
    "WeightedConsensus",
    "agreement",
    "ask",
    "bgcm",
    "combine",
    "compare",
    "compare_on_held_out_models",
    "datasets",
    "dawid_skene",
    "decide",
    "decision",
    "explain",
    "from_dask",
    "from_dataset",
    "from_long",
    "io",
    "leave_out",
    "load",
    "majority_vote",
    "merge",
    "metrics",
    "mlcm_a",
    "mlcm_r",
    "privacy",
    "read_predictions",
    "register",
    "rescale",
    "save",
    "save_statistics",
    "scan_predictions",
    "subtract",
    "weighted_consensus",
    "write_consensus",
]
