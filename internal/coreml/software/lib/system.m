// The system of the Core ML in software.
#import <Foundation/Foundation.h>

#include "software.h"

// A category takes the place of the class's own method, which is what is wanted here.
#pragma clang diagnostic ignored "-Wobjc-protocol-method-implementation"
@implementation NSProcessInfo (System)
- (NSString *)operatingSystemVersionString { return rlx_older ? @"Version 14.3 (in software)" : @"Version 15.0 (in software)"; }
@end
