package applecheck

import (
	"slices"
	"testing"
)

func TestNamesOfDeclarations(t *testing.T) {
	got := declarations(`@interface A : NSObject // a comment; with a semicolon
- (void)run;
+ (instancetype)array;
- (oneway void)setSize:(NSUInteger)size;
- (id)copyFromBuffer:(id<MTLBuffer>)from sourceOffset:(NSUInteger)offset; // bytes
+ (void)loadContentsOfURL:(NSURL *)url
            configuration:(MLModelConfiguration *)configuration
        completionHandler:(void (^)(MLComputePlan *plan, NSError *error))handler;
@end`)
	want := []string{"run", "array", "setSize:", "copyFromBuffer:sourceOffset:", "loadContentsOfURL:configuration:completionHandler:"}
	if !slices.Equal(got, want) {
		t.Errorf("the names are %q, not %q", got, want)
	}
}
