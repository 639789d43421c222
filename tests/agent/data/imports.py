import importlib
import xml.dom
import xml.dom
try:
    import nothing.there
except ImportError:
    pass
importlib.import_module("colorsys")
__import__("fractions")
from json import decoder
try:
    import no_such_module
except ImportError:
    import readline
