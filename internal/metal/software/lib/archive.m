// Binary archives of the software device.
#import "library.h"

NSString *sw_contents(NSString *path) { return [NSString stringWithContentsOfFile:path encoding:NSUTF8StringEncoding error:NULL]; }

// SWArchive is a file of one line for each pipeline: a hash of its source.
@interface SWBinaryArchiveDescriptor : MTLBinaryArchiveDescriptor {
@public
	NSURL *url;
}
@end
SW_CLUSTER(MTLBinaryArchiveDescriptor, SWBinaryArchiveDescriptor)
@implementation SWBinaryArchiveDescriptor
- (void)setUrl:(NSURL *)u {
	[u retain];
	[url release];
	url = u;
}
- (void)dealloc {
	[url release];
	[super dealloc];
}
@end
@interface SWArchive : SWObject <MTLBinaryArchive> {
@public
	NSMutableSet *held;
}
@end

static NSString *const magic = @"software archive";
static NSString *key(SWLibrary *lib) { return [NSString stringWithFormat:@"%lu", (unsigned long)[lib->source hash]]; }

@implementation SWArchive
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor *)descriptor error:(NSError **)error {
	SWComputePipelineDescriptor *d = (SWComputePipelineDescriptor *)descriptor;
	@synchronized(self) {
		[held addObject:key(d->function->library)];
	}
	return YES;
}
- (BOOL)serializeToURL:(NSURL *)url error:(NSError **)error {
	NSString *text = [[[NSArray arrayWithObject:magic] arrayByAddingObjectsFromArray:[held allObjects]] componentsJoinedByString:@"\n"];
	if ([text writeToFile:[url path] atomically:NO encoding:NSUTF8StringEncoding error:NULL]) return YES;
	*error = sw_error(@"MTLBinaryArchiveDomain", 1, "the file cannot be written");
	return NO;
}
- (void)dealloc {
	[held release];
	[super dealloc];
}
@end

id<MTLBinaryArchive> sw_archive(MTLBinaryArchiveDescriptor *descriptor, NSError **error) {
	SWBinaryArchiveDescriptor *d = (SWBinaryArchiveDescriptor *)descriptor;
	SWArchive *a = [SWArchive new];
	a->held = [NSMutableSet new];
	if (!d->url) return a;
	NSArray *lines = [sw_contents([d->url path]) componentsSeparatedByString:@"\n"];
	if ([[lines objectAtIndex:0] isEqualToString:magic]) {
		[a->held addObjectsFromArray:lines];
		return a;
	}
	*error = sw_error(@"MTLBinaryArchiveDomain", 1, "the file is no archive");
	[a release];
	return nil;
}

BOOL sw_archived(NSArray *archives, SWLibrary *lib) {
	for (SWArchive *a in archives)
		@synchronized(a) {
			if ([a->held containsObject:key(lib)]) return YES;
		}
	return NO;
}
