// GNUstep asks for this header of another Objective-C runtime; the runtime of blocks
// that Debian has declares the same functions.
#include <Block.h>
