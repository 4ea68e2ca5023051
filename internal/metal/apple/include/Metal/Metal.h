// The part of Metal that package driver uses, declared from Apple's documentation:
// the page of each declaration is its name under https://developer.apple.com/documentation/metal,
// and testdata/selectors.txt lists the methods with their pages. On a Mac Apple's own header is used.
#import <Foundation/Foundation.h>

typedef struct {
	NSUInteger width, height, depth;
} MTLSize; // mtlsize

static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
	MTLSize size = {width, height, depth};
	return size;
}

typedef struct {
	NSUInteger size, align;
} MTLSizeAndAlign; // mtlsizeandalign

typedef NSUInteger MTLResourceOptions; // mtlresourceoptions
enum { MTLResourceStorageModeShared = 0 };

typedef NSUInteger MTLStorageMode; // mtlstoragemode
enum { MTLStorageModeShared = 0 };

typedef NSInteger MTLHazardTrackingMode; // mtlhazardtrackingmode
enum { MTLHazardTrackingModeTracked = 2 };

typedef NSInteger MTLGPUFamily; // mtlgpufamily
enum { MTLGPUFamilyApple7 = 1007 };

typedef NSUInteger MTLLanguageVersion; // mtllanguageversion
enum { MTLLanguageVersion2_3 = (2 << 16) + 3, MTLLanguageVersion3_1 = (3 << 16) + 1 };

typedef NSUInteger MTLPipelineOption; // mtlpipelineoption
enum { MTLPipelineOptionNone = 0 };

typedef NSUInteger MTLCommandBufferStatus; // mtlcommandbufferstatus
enum { MTLCommandBufferStatusCompleted = 4, MTLCommandBufferStatusError = 5 };

// mtlcommandbuffererror/code
enum {
	MTLCommandBufferErrorAccessRevoked = 4,
	MTLCommandBufferErrorOutOfMemory = 8,
	MTLCommandBufferErrorDeviceRemoved = 11,
};

@protocol MTLDevice, MTLCommandBuffer;

@protocol MTLBuffer <NSObject>
- (void *)contents;
@end

@interface MTLHeapDescriptor : NSObject
- (void)setSize:(NSUInteger)size;
- (void)setStorageMode:(MTLStorageMode)mode;
- (void)setHazardTrackingMode:(MTLHazardTrackingMode)mode;
@end

@protocol MTLHeap <NSObject>
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
@end

@protocol MTLFunction <NSObject>
@end

@protocol MTLLibrary <NSObject>
- (id<MTLFunction>)newFunctionWithName:(NSString *)name;
@end

@interface MTLCompileOptions : NSObject
- (void)setFastMathEnabled:(BOOL)enabled;
- (void)setLanguageVersion:(MTLLanguageVersion)version;
@end

@protocol MTLBinaryArchive;

@interface MTLComputePipelineDescriptor : NSObject
- (void)setComputeFunction:(id<MTLFunction>)function;
- (void)setBinaryArchives:(NSArray *)archives;
@end

@class MTLComputePipelineReflection;

@protocol MTLComputePipelineState <NSObject>
- (NSUInteger)maxTotalThreadsPerThreadgroup;
- (NSUInteger)threadExecutionWidth;
@end

@interface MTLBinaryArchiveDescriptor : NSObject
- (void)setUrl:(NSURL *)url;
@end

@protocol MTLBinaryArchive <NSObject>
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor *)descriptor error:(NSError **)error;
- (BOOL)serializeToURL:(NSURL *)url error:(NSError **)error;
@end

@protocol MTLCommandEncoder <NSObject>
- (void)endEncoding;
@end

@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads;
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)buffer
                          indirectBufferOffset:(NSUInteger)offset
                         threadsPerThreadgroup:(MTLSize)threads;
@end

@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)fromOffset
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)toOffset
                  size:(NSUInteger)size;
@end

typedef void (^MTLCommandBufferHandler)(id<MTLCommandBuffer>);

@protocol MTLCommandBuffer <NSObject>
- (void)setLabel:(NSString *)label;
- (id<MTLComputeCommandEncoder>)computeCommandEncoder;
- (id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (void)addCompletedHandler:(MTLCommandBufferHandler)handler;
- (void)commit;
- (MTLCommandBufferStatus)status;
- (NSError *)error;
@end

// Residency sets: macOS 15.
@protocol MTLResidencySet <NSObject> // mtlresidencyset
- (void)addAllocation:(id)allocation;
- (void)removeAllocation:(id)allocation;
- (void)commit;
- (void)requestResidency;
@end

@protocol MTLCommandQueue <NSObject>
- (id<MTLCommandBuffer>)commandBuffer;
- (void)addResidencySet:(id<MTLResidencySet>)set; // macOS 15
@end

@protocol MTLDevice <NSObject>
- (NSString *)name;
- (BOOL)supportsFamily:(MTLGPUFamily)family;
- (uint64_t)recommendedMaxWorkingSetSize;
- (NSUInteger)currentAllocatedSize;
- (NSUInteger)maxBufferLength;
- (NSUInteger)maxThreadgroupMemoryLength;
- (MTLSize)maxThreadsPerThreadgroup;
- (id<MTLCommandQueue>)newCommandQueue;
- (MTLSizeAndAlign)heapBufferSizeAndAlignWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLHeap>)newHeapWithDescriptor:(MTLHeapDescriptor *)descriptor;
- (id<MTLResidencySet>)newResidencySetWithDescriptor:(id)descriptor error:(NSError **)error; // macOS 15
- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source options:(MTLCompileOptions *)options error:(NSError **)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:(MTLComputePipelineReflection **)reflection
                                                               error:(NSError **)error;
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor *)descriptor error:(NSError **)error;
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void); // mtlcreatesystemdefaultdevice()
