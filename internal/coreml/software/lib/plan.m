// The plans of the software Core ML, passed to a separate thread, as Core ML does.
#include "keeps.h"

#include <stdlib.h>
#include <string.h>

#import <CoreML/CoreML.h>

@interface MLModel (Evaluated)
- (uintptr_t)handle;
@end

@interface MLCPUComputeDevice : NSObject <MLComputeDeviceProtocol>
@end
@implementation MLCPUComputeDevice
@end
@interface MLGPUComputeDevice : NSObject <MLComputeDeviceProtocol>
@end
@implementation MLGPUComputeDevice
@end
@implementation MLNeuralEngineComputeDevice
- (NSInteger)totalCoreCount { return 16; }
@end

NSArray *rlx_devices(int set) {
	static NSArray *all;
	if (!all) all = [[NSArray alloc] initWithObjects:[MLCPUComputeDevice new], [MLGPUComputeDevice new], [MLNeuralEngineComputeDevice new], nil];
	NSMutableArray *list = [NSMutableArray array];
	for (NSUInteger i = 0; i < [all count]; i++) {
		if (set & (1 << i)) [list addObject:[all objectAtIndex:i]];
	}
	return list;
}

@implementation MLModelStructureProgramNamedValueType
- (NSString *)name { return name; }
- (void)dealloc {
	[name release];
	[super dealloc];
}
@end

@implementation MLModelStructureProgramOperation
- (NSString *)operatorName { return [NSString stringWithUTF8String:at.kind]; }
- (NSArray *)outputs {
	MLModelStructureProgramNamedValueType *v = [[[MLModelStructureProgramNamedValueType alloc] init] autorelease];
	v->name = [[NSString alloc] initWithUTF8String:at.name];
	return [NSArray arrayWithObject:v];
}
@end

@implementation MLModelStructureProgramBlock
- (NSArray *)operations { return operations; }
@end

@implementation MLModelStructureProgramFunction
- (MLModelStructureProgramBlock *)block {
	MLModelStructureProgramBlock *b = [[[MLModelStructureProgramBlock alloc] init] autorelease];
	b->operations = operations;
	return b;
}
@end

@implementation MLModelStructureProgram
- (NSDictionary *)functions {
	MLModelStructureProgramFunction *f = [[[MLModelStructureProgramFunction alloc] init] autorelease];
	f->operations = operations;
	return [NSDictionary dictionaryWithObject:f forKey:function];
}
@end

@implementation MLModelStructure
- (MLModelStructureProgram *)program {
	MLModelStructureProgram *p = [[[MLModelStructureProgram alloc] init] autorelease];
	p->function = function, p->operations = operations;
	return p;
}
@end

@implementation MLComputePlanDeviceUsage
- (id<MLComputeDeviceProtocol>)preferredComputeDevice { return [rlx_devices(preferred) objectAtIndex:0]; }
- (NSArray *)supportedComputeDevices { return rlx_devices(supported); }
@end

@implementation MLComputePlanCost
- (double)weight { return weight; }
@end

// RLXRequest is a plan that was asked for.
@interface RLXRequest : NSObject {
@public
	MLComputePlan *plan;
	NSError *error;
	void (^handler)(MLComputePlan *, NSError *);
}
@end

@implementation RLXRequest
- (void)answer {
	@autoreleasepool {
		handler(plan, error);
		Block_release(handler);
		[plan release];
		[error release];
	}
}
@end

@implementation MLComputePlan

+ (BOOL)respondsToSelector:(SEL)selector { return !rlx_older && [super respondsToSelector:selector]; }

+ (void)loadContentsOfURL:(NSURL *)url configuration:(MLModelConfiguration *)c completionHandler:(void (^)(MLComputePlan *, NSError *))handler {
	RLXRequest *request = [[[RLXRequest alloc] init] autorelease];
	request->handler = Block_copy(handler);
	NSError *error = nil;
	MLModel *model = [MLModel modelWithContentsOfURL:url configuration:c error:&error];
	request->error = [error retain];
	if (model) request->plan = [[MLComputePlan alloc] initWithModel:model configuration:c];
	[NSThread detachNewThreadSelector:@selector(answer) toTarget:request withObject:nil];
}

// initWithModel notes the operations of a model, on the processors of the configuration.
- (id)initWithModel:(MLModel *)model configuration:(MLModelConfiguration *)c {
	static const int units[] = {RLX_CPU, RLX_CPU | RLX_GPU, RLX_CPU | RLX_GPU | RLX_NEURAL_ENGINE, RLX_CPU | RLX_NEURAL_ENGINE};
	if (!(self = [super init])) return nil;
	rlx_counted++;
	function = [(c->function ? c->function : @"main") copy];
	rlx_placement *list;
	NSMutableArray *all = [NSMutableArray array];
	int count = rlx_evaluates.plan([model handle], &list);
	for (int i = 0; i < count; i++) {
		MLModelStructureProgramOperation *op = [[[MLModelStructureProgramOperation alloc] init] autorelease];
		op->at = list[i];
		op->at.supported &= units[c->units];
		if (op->at.preferred && !(op->at.preferred & op->at.supported)) op->at.preferred = RLX_CPU;
		[all addObject:op];
	}
	free(list);
	operations = [all retain];
	return self;
}

- (void)dealloc {
	rlx_counted--;
	[function release];
	[operations release];
	[super dealloc];
}

- (MLModelStructure *)modelStructure {
	MLModelStructure *s = [[[MLModelStructure alloc] init] autorelease];
	s->function = function, s->operations = operations;
	return s;
}

- (MLComputePlanDeviceUsage *)computeDeviceUsageForMLProgramOperation:(MLModelStructureProgramOperation *)op {
	if (!op->at.preferred) return nil;
	MLComputePlanDeviceUsage *u = [[[MLComputePlanDeviceUsage alloc] init] autorelease];
	u->preferred = op->at.preferred, u->supported = op->at.supported;
	return u;
}

- (MLComputePlanCost *)estimatedCostOfMLProgramOperation:(MLModelStructureProgramOperation *)op {
	if (op->at.cost < 0) return nil;
	MLComputePlanCost *c = [[[MLComputePlanCost alloc] init] autorelease];
	c->weight = op->at.cost;
	return c;
}
@end
