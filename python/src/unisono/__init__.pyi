from . import device as device
from . import experts as experts
from . import model as model
from . import parallel as parallel
from . import pipeline as pipeline
from . import schedules as schedules
from ._core import ANY_SOURCE as ANY_SOURCE
from ._core import Communicator as Communicator
from ._core import Explanation as Explanation
from ._core import Plan as Plan
from ._core import Region as Region
from ._core import Request as Request
from ._core import connect as connect
from ._core import premul_sum as premul_sum
from ._core import run_threads as run_threads
from ._errors import Aborted as Aborted
from ._errors import ConfigError as ConfigError
from ._errors import ConnectionFailed as ConnectionFailed
from ._errors import Corrupt as Corrupt
from ._errors import Error as Error
from ._errors import Evicted as Evicted
from ._errors import Mismatch as Mismatch
from ._errors import PeerLost as PeerLost
from ._errors import ResourceError as ResourceError
from ._errors import Timeout as Timeout
from ._errors import UsageError as UsageError

__version__: str
