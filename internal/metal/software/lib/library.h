// What the parts of the compiler of the software device share.
#import "software.h"

@interface SWLibrary : SWObject <MTLLibrary> {
@public
	NSString *source, *name, *code; // code is the C++ that it becomes
	int number, synchronises, ready;
	NSUInteger buffers, threads;
	sw_kernel kernel;
	NSString *failure;
}
@end

@interface SWFunction : SWObject <MTLFunction> {
@public
	SWLibrary *library;
}
@end

@interface SWComputePipelineDescriptor : MTLComputePipelineDescriptor {
@public
	SWFunction *function;
	NSArray *archives;
}
@end
NSString *sw_contents(NSString *path);
// sw_translate translates a library's source with one kernel to C++: its parameters get bounds, and
// a function that calls it is named sw_call_ and the number. It returns NO for source that Metal
// would refuse.
BOOL sw_translate(SWLibrary *lib);
// sw_archived reports whether one of some archives has the pipeline of a library.
BOOL sw_archived(NSArray *archives, SWLibrary *lib);
