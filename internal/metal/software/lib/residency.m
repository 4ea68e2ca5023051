// Residency sets of the software device.
#import "software.h"

#include <pthread.h>

@interface MTLResidencySetDescriptor : NSObject
@end
@implementation MTLResidencySetDescriptor
@end

// A set retains its heaps, so a heap that is not removed leaks. Changes take effect when
// the set is committed.
@interface SWResidencySet : NSObject <MTLResidencySet> { // not counted, as the device
@public
	NSMutableSet *staged, *resident;
	pthread_mutex_t lock;
}
@end
@implementation SWResidencySet
- (id)init {
	if (!(self = [super init])) return nil;
	staged = [NSMutableSet new], resident = [NSMutableSet new];
	pthread_mutex_init(&lock, NULL);
	return self;
}
- (void)addAllocation:(id)allocation { [staged addObject:allocation]; }
- (void)removeAllocation:(id)allocation {
	if (![staged containsObject:allocation]) sw_violation("what is taken out of a residency set is not in it");
	[staged removeObject:allocation];
}
- (void)commit {
	pthread_mutex_lock(&lock);
	[resident setSet:staged];
	pthread_mutex_unlock(&lock);
	sw_note("resident %lu", (unsigned long)[staged count]);
}
- (void)requestResidency {
	if (![resident isEqual:staged]) sw_violation("residency is asked for before the set is committed");
}
@end

id<MTLResidencySet> sw_residency(void) { return [SWResidencySet new]; }

int sw_resident(id<MTLResidencySet> set, id heap) {
	SWResidencySet *s = (SWResidencySet *)set;
	pthread_mutex_lock(&s->lock);
	int found = [s->resident containsObject:heap];
	pthread_mutex_unlock(&s->lock);
	return found;
}
