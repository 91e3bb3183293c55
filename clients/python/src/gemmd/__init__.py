"""gemmd: matrix operations on a GPU, a CPU or a simulated GPU, by a gemmd daemon. NumPy in, NumPy out.

>>> import gemmd, numpy as np
>>> client = gemmd.Client("http://localhost:8080")
>>> product = client.matmul(np.random.rand(500, 300), np.random.rand(300, 400))
>>> print(product.account)                                # which kernel ran, and how long each stage took
>>> print(client.compare("transpose", product))           # every kernel of an operation
>>> print(client.explain("transpose", kernel="tiled"))    # why a kernel is slow, line by line
>>> x = client.put(product)                               # stays with the daemon
>>> gemmd.tanh(x @ x.T + 1).get()                         # an expression in one round trip

help(gemmd.Client) says all that there is to know; gemmd.AsyncClient is the same for asyncio.
"""

from .account import Account
from .aio import AsyncClient
from .arrays import NamedMatrix, Operand, Result
from .client import VERSION, Client
from .errors import (
    AuthError,
    Error,
    ReplyError,
    RequestError,
    ServerError,
    TimeoutError,
    TransportError,
    UnavailableError,
)
from .lazy import Expression, absolute, equal, exp, log, maximum, mean, minimum, not_equal, sqrt, tanh, where
from .lazy import greatest as _greatest
from .lazy import least as _least
from .lazy import total as _total
from .progress import Progress, ProgressBar
from .reports import Candidate, Choice, ComparedKernel, Comparison, Explanation, Site

__version__ = VERSION

# Assigned: a type checker takes a name that is imported and not in __all__ for a private one.
abs = absolute  # noqa: A001
max = _greatest  # noqa: A001
min = _least  # noqa: A001
sum = _total  # noqa: A001

# Not abs, max, min and sum: `from gemmd import *` would hide Python's.
__all__ = [
    "Account",
    "AsyncClient",
    "AuthError",
    "Candidate",
    "Choice",
    "Client",
    "ComparedKernel",
    "Comparison",
    "Error",
    "Explanation",
    "Expression",
    "NamedMatrix",
    "Operand",
    "Progress",
    "ProgressBar",
    "ReplyError",
    "RequestError",
    "Result",
    "ServerError",
    "Site",
    "TimeoutError",
    "TransportError",
    "UnavailableError",
    "absolute",
    "equal",
    "exp",
    "log",
    "maximum",
    "mean",
    "minimum",
    "not_equal",
    "sqrt",
    "tanh",
    "where",
]
