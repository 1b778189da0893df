// The result of the parsers, which all layers share.
#pragma once

#include "base/parsed.h"
