// GNUstep includes this header of another Objective-C runtime to have blocks.
#include <Block.h>
