// What Core ML reports of itself and of its models. Classes of later systems are looked up
// by name, so that programs start on earlier ones.
#include "internal_darwin.h"

int rlx_processor(NSObject *device) {
	static const struct {
		NSString *class;
		int processor;
	} kinds[] = {
		{@"MLCPUComputeDevice", RLX_CPU}, {@"MLGPUComputeDevice", RLX_GPU}, {@"MLNeuralEngineComputeDevice", RLX_NEURAL_ENGINE},
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (device && [device isKindOfClass:NSClassFromString(kinds[i].class)]) return kinds[i].processor;
	}
	return 0;
}

int rlx_processors(NSArray *devices) {
	int set = 0;
	for (NSUInteger i = 0; i < [devices count]; i++) set |= rlx_processor([devices objectAtIndex:i]);
	return set;
}

int rlx_describe(rlx_system *system, rlx_why *why) {
	@autoreleasepool {
		memset(system, 0, sizeof *system);
		NSString *version = [[NSProcessInfo processInfo] operatingSystemVersionString];
		snprintf(system->version, sizeof system->version, "%s", [version UTF8String]);
		if (![MLModel instancesRespondToSelector:@selector(newState)]) {
			return rlx_coreml_fail(why, "Core ML needs macOS 15 or iOS 18", nil), 1;
		}
		NSArray *devices = [MLModel availableComputeDevices];
		system->processors = rlx_processors(devices);
		for (NSUInteger i = 0; i < [devices count]; i++) {
			NSObject *device = [devices objectAtIndex:i];
			if (rlx_processor(device) == RLX_NEURAL_ENGINE) system->neural_cores = (int)[(MLNeuralEngineComputeDevice *)device totalCoreCount];
		}
		return 0;
	}
}

// compute_plan waits for the plan of a model, which belongs to the caller.
static MLComputePlan *compute_plan(rlx_model *m, rlx_why *why) {
	NSConditionLock *done = [[NSConditionLock alloc] initWithCondition:0];
	__block MLComputePlan *plan = nil;
	__block NSError *error = nil;
	[(Class)NSClassFromString(@"MLComputePlan") loadContentsOfURL:m->compiled
	                                                configuration:m->configuration
	                                            completionHandler:^(MLComputePlan *made, NSError *from) {
		                                            plan = [made retain];
		                                            error = [from retain];
		                                            [done lock];
		                                            [done unlockWithCondition:1];
	                                            }];
	[done lockWhenCondition:1];
	[done unlock];
	[done release];
	if (!plan) rlx_coreml_fail(why, "Core ML cannot plan the model", error);
	[error release];
	return plan;
}

// place fills in the placement of an operation. Constants have neither a device nor a cost.
static void place(MLComputePlan *plan, MLModelStructureProgramOperation *op, rlx_placement *to) {
	memset(to, 0, sizeof *to);
	snprintf(to->kind, sizeof to->kind, "%s", [[op operatorName] UTF8String]);
	NSArray *outputs = [op outputs];
	if ([outputs count] > 0) {
		MLModelStructureProgramNamedValueType *first = [outputs objectAtIndex:0];
		snprintf(to->name, sizeof to->name, "%s", [[first name] UTF8String]);
	}
	MLComputePlanDeviceUsage *usage = [plan computeDeviceUsageForMLProgramOperation:op];
	to->preferred = rlx_processor((NSObject *)[usage preferredComputeDevice]);
	to->supported = rlx_processors([usage supportedComputeDevices]);
	MLComputePlanCost *cost = [plan estimatedCostOfMLProgramOperation:op];
	to->cost = cost ? [cost weight] : -1;
}

int rlx_plan(void *handle, rlx_placement **placements, rlx_why *why) {
	@autoreleasepool {
		rlx_model *m = handle;
		if (![(Class)NSClassFromString(@"MLComputePlan") respondsToSelector:@selector(loadContentsOfURL:configuration:completionHandler:)]) {
			return rlx_coreml_fail(why, "plans need macOS 14.4 or iOS 17.4", nil), -2;
		}
		MLComputePlan *plan = [compute_plan(m, why) autorelease];
		if (!plan) return -1;
		MLModelStructureProgramFunction *function = [[[[plan modelStructure] program] functions] objectForKey:m->function];
		if (!function) return rlx_coreml_fail(why, "the plan lacks the function", nil), -1;
		NSArray *ops = [[function block] operations];
		*placements = calloc([ops count] + 1, sizeof **placements);
		for (NSUInteger i = 0; i < [ops count]; i++) place(plan, [ops objectAtIndex:i], &(*placements)[i]);
		return (int)[ops count];
	}
}
