// The system of the Core ML in software.
#import <Foundation/Foundation.h>

#include "software.h"

// The category intentionally replaces the class's own method.
#pragma clang diagnostic ignored "-Wobjc-protocol-method-implementation"
@implementation NSProcessInfo (System)
- (NSString *)operatingSystemVersionString { return rlx_older ? @"Version 14.3 (in software)" : @"Version 15.0 (in software)"; }
@end
