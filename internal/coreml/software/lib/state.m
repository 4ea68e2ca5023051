// The states of the Core ML in software, whose values are in the evaluator.
#include <stdlib.h>

#include "keeps.h"

#import <CoreML/CoreML.h>

@interface MLMultiArray (Padded)
- (id)initPadded:(const rlx_array *)like;
- (void)move:(char *)dense in:(BOOL)in;
@end

@implementation MLState

- (id)init {
	rlx_counted++;
	return [super init];
}

- (void)dealloc {
	rlx_counted--;
	[super dealloc];
}

// The buffer has padded rows, as outputs have.
- (void)getMultiArrayForStateNamed:(NSString *)name handler:(void (^)(MLMultiArray *buffer))handler {
	rlx_array a = {.name = [name UTF8String]};
	if (!rlx_evaluates.state(handle, a.name, &a, 0)) {
		[NSException raise:@"NSInvalidArgumentException" format:@"the model has no state %s", a.name];
	}
	MLMultiArray *buffer = [[MLMultiArray alloc] initPadded:&a];
	[buffer move:a.data in:YES];
	handler(buffer);
	[buffer move:a.data in:NO];
	rlx_evaluates.state(handle, a.name, &a, 1);
	[buffer release];
	free(a.data);
}
@end
