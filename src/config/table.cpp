// Every key that a configuration may hold, once. Order: as in docs/options.md, which is printed from here.
// Not here: reading (options.cpp), converting (convert.cpp), what the keys do (settings.hpp and its readers).
#include "config/row.hpp"

namespace zero::config {
namespace {

constexpr std::string_view adams = "Adam|AdamW";
constexpr std::string_view with_betas = "Adam|AdamW|Lamb|Lion";
constexpr std::string_view with_eps = "Adam|AdamW|Lamb|Adagrad";
constexpr std::string_view with_correction = "Adam|AdamW|Lamb";
constexpr std::string_view warm = "WarmupLR|WarmupDecayLR|WarmupCosineLR";
constexpr std::string_view pytorch = "belongs to PyTorch modules, which this library does not see";
constexpr std::string_view quantised = "quantised collectives are not built: remove the key or set it to its default";
constexpr std::string_view nvme_only = "read by NVMe offload only, which this build does not have";
constexpr std::string_view types_known = "every tensor has the type it was registered with";

constexpr row rows[] = {
    // --- zero_optimization -------------------------------------------------------------------------------------------
    integer("zero_optimization.stage", "0",
            "what is sharded: 0 nothing, 1 optimizer states, 2 and gradients, 3 and parameters; true (old form) means "
            "1").to("3"),
    flag("zero_optimization.contiguous_gradients", "true",
         "gradients are copied into the flat bucket as they come; false: every tensor is a bucket of its own"),
    flag("zero_optimization.reduce_scatter", "true",
         "DeepSpeed: false reduces with all-reduce and keeps the own slice")
        .only_default("a reduce-scatter gives the same bits and sends half as much"),
    integer("zero_optimization.reduce_bucket_size", "500000000",
            "elements that travel together in a reduction; capped at what the model needs; auto: the largest tensor")
        .from("1").autom(),
    flag("zero_optimization.allgather_partitions", "true",
         "DeepSpeed: false publishes with one broadcast per owner").in("12")
        .only_default("an all-gather gives the same bits in fewer messages"),
    integer("zero_optimization.allgather_bucket_size", "500000000",
            "elements per piece of the all-gather after the update").from("1").autom().in("12"),
    flag("zero_optimization.overlap_comm", "",
         "full buckets leave before zero_step (in stages 2 and 3 in any case) and, by libzero.overlap_thread, move on while the caller "
         "computes; default: on in stage 3, else off").autom(),
    flag("zero_optimization.round_robin_gradients", "false",
         "DeepSpeed: spread the copying of gradients over ranks")
        .no_effect("every rank owns part of every bucket already"),
    flag("zero_optimization.use_multi_rank_bucket_allreduce", "true",
         "DeepSpeed: one collective for the buckets of several ranks")
        .no_effect("every rank owns part of every bucket already"),
    flag("zero_optimization.load_from_fp32_weights", "true",
         "masters are restored from the saved fp32 masters")
        .unsupported("masters are always restored as they were saved: remove the key"),
    flag("zero_optimization.elastic_checkpoint", "false",
         "DeepSpeed: load on another number of ranks").no_effect("loading on another number of ranks always works"),
    flag("zero_optimization.legacy_stage1", "false",
         "DeepSpeed: its old stage 1").no_effect("there is one stage 1 here"),
    word("zero_optimization.offload_optimizer.device", "\"none\"", "none|cpu|!nvme",
         "where optimizer states (and masters) live").in("123").instead("set it to \"cpu\" or \"none\""),
    word("zero_optimization.offload_optimizer.nvme_path", "", "",
         "folder for the swap files; needed when device is nvme").in("123").no_effect(nvme_only),
    flag("zero_optimization.offload_optimizer.pin_memory", "true",
         "offloaded states lie in page-locked memory where that can be had").in("123"),
    integer("zero_optimization.offload_optimizer.buffer_count", "4",
            "buffers between NVMe and memory").from("1").in("123").no_effect(nvme_only),
    flag("zero_optimization.offload_optimizer.pipeline_read", "false",
         "read the next piece while this one is updated").in("123").no_effect(nvme_only),
    flag("zero_optimization.offload_optimizer.pipeline_write", "false",
         "write the last piece while this one is updated").in("123").no_effect(nvme_only),
    flag("zero_optimization.offload_optimizer.fast_init", "false",
         "faster first write of the swap files").in("123").no_effect(nvme_only),
    real("zero_optimization.offload_optimizer.ratio", "1.0",
         "part of the states that lie and are updated on the host, in whole buckets; the rest stays on the device").to("1").in("123"),
    flag("zero_optimization.offload_optimizer.super_offload", "false",
         "DeepSpeed: SuperOffload").unsupported("it is not built: remove the key"),
    real("zero_optimization.offload_optimizer.cpuadam_cores_perc", "0.8",
         "DeepSpeed: share of the cores for its CPU Adam").from(">0").to("1").in("123")
        .no_effect("belongs to SuperOffload; libzero.threads says how many threads share the update"),
    word("zero_optimization.offload_param.device", "\"none\"", "none|cpu|!nvme",
         "where the parameter slices of stage 3 live").in("3").instead("set it to \"cpu\" or \"none\""),
    word("zero_optimization.offload_param.nvme_path", "", "",
         "folder for the swap files; needed when device is nvme").in("3").no_effect(nvme_only),
    flag("zero_optimization.offload_param.pin_memory", "true",
         "offloaded slices lie in page-locked memory where that can be had").in("3"),
    integer("zero_optimization.offload_param.buffer_count", "5",
            "buffers between NVMe and memory").from("1").in("3").no_effect(nvme_only),
    integer("zero_optimization.offload_param.buffer_size", "100000000",
            "elements per buffer").from("1").autom().in("3").no_effect(nvme_only),
    integer("zero_optimization.offload_param.max_in_cpu", "1000000000",
            "elements kept in memory beside NVMe").autom().in("3").no_effect(nvme_only),
    integer("zero_optimization.sub_group_size", "1000000000",
            "the update is tiled over pieces of about this many elements").from("1").autom(),
    integer("zero_optimization.stage3_prefetch_bucket_size", "50000000",
            "elements gathered ahead in the order recorded in the first step; 0: off; auto: 0.9 x the largest tensor")
        .autom().in("3"),
    integer("zero_optimization.stage3_param_persistence_threshold", "100000",
            "tensors of at most this many elements stay whole; auto: 10 sqrt(largest tensor)").autom().in("3"),
    integer("zero_optimization.stage3_model_persistence_threshold", "9223372036854775807",
            "cap on the elements of all tensors that stay whole").autom().in("3"),
    integer("zero_optimization.stage3_max_live_parameters", "1000000000",
            "cap on gathered elements: a gather beyond it is an error that says so, prefetch stops at it")
        .autom().in("3"),
    integer("zero_optimization.stage3_max_reuse_distance", "1000000000",
            "a released tensor is kept if it was used again within so many elements").autom().in("3"),
    flag("zero_optimization.stage3_gather_16bit_weights_on_model_save", "false",
         "also write one consolidated file of 16-bit values").in("3")
        .unsupported("the checkpoint's index.h5 already shows whole tensors: remove the key"),
    integer("zero_optimization.stage3_module_granularity_threshold", "0",
            "DeepSpeed: modules fetched as one").in("3").no_effect(pytorch),
    flag("zero_optimization.stage3_use_all_reduce_for_fetch_params", "false",
         "DeepSpeed: fetch parameters by all-reduce").in("3").no_effect("gathers are all-gathers without copies"),
    flag("zero_optimization.stage3_allgather_sequential", "false",
         "DeepSpeed: gather tensor by tensor").in("3")
        .no_effect("a gather never goes through a flattening buffer here"),
    integer("zero_optimization.stage3_partition_stream_chunk_size", "0",
            "DeepSpeed: chunk in which zero.Init cuts a tensor").in("3")
        .no_effect("no rank ever holds a whole tensor that the library fills"),
    object("zero_optimization.leaf_module", "DeepSpeed: modules treated as leaves").in("3").no_effect(pytorch),
    flag("zero_optimization.memory_efficient_linear", "true",
         "DeepSpeed: its own linear layer").in("3").no_effect(pytorch),
    flag("zero_optimization.override_module_apply", "true",
         "DeepSpeed: patches nn.Module.apply").in("3").no_effect(pytorch),
    flag("zero_optimization.pipeline_loading_checkpoint", "false",
         "DeepSpeed: loads a checkpoint piece by piece").in("3").no_effect(pytorch),
    flag("zero_optimization.log_trace_cache_warnings", "false",
         "DeepSpeed: warnings of its module trace").in("3").no_effect(pytorch),
    flag("zero_optimization.enable_sanity_checks", "false",
         "compares call order and arguments over ranks at every call"),
    flag("zero_optimization.ignore_unused_parameters", "true",
         "false: a trainable tensor without gradient in a window is an error that names it"),
    integer("zero_optimization.zero_hpz_partition_size", "1",
            "ZeRO++ hpZ: ranks of a node that hold a second shard").in("3")
        .unsupported("it is not built: remove the key or set it to 1"),
    flag("zero_optimization.zero_quantized_weights", "false",
         "ZeRO++: gathers travel as int8").in("3").unsupported(quantised),
    flag("zero_optimization.zero_quantized_nontrainable_weights", "false",
         "ZeRO++: frozen tensors are kept as int8").in("3").unsupported(quantised),
    flag("zero_optimization.zero_quantized_gradients", "false",
         "ZeRO++: reductions travel as int4").in("23").unsupported(quantised),
    object("zero_optimization.zeropp_loco_param",
           "ZeRO++ LoCo: error feedback of quantised gradients").unsupported(quantised),
    integer("zero_optimization.mics_shard_size", "-1",
            "MiCS: shard inside groups of this many ranks only").from("-1").in("3")
        .unsupported("it is not built: remove the key or set it to -1"),
    flag("zero_optimization.mics_hierarchical_params_gather", "false",
         "MiCS: gather in two levels").in("3").unsupported("it is not built: remove the key"),
    object("zero_optimization.zenflow", "DeepSpeed: ZenFlow").unsupported("it is not built: remove the key"),
    flag("zero_optimization.super_offload", "false",
         "DeepSpeed: SuperOffload").unsupported("it is not built: remove the key"),
    flag("zero_optimization.save_muon_momentum_buffer_in_memory", "false",
         "DeepSpeed: Muon's momentum stays in memory").in("3").no_effect("Muon is not built"),
    // old names
    flag("zero_optimization.cpu_offload", "",
         "old name of offload_optimizer.device: true means \"cpu\"")
        .means("zero_optimization.offload_optimizer.device").in("123"),
    flag("zero_optimization.cpu_offload_param", "",
         "old name of offload_param.device: true means \"cpu\"")
        .means("zero_optimization.offload_param.device").in("3"),
    flag("zero_optimization.cpu_offload_use_pin_memory", "",
         "old name of pin_memory in both offload sections")
        .means("zero_optimization.offload_optimizer.pin_memory|zero_optimization.offload_param.pin_memory").in("123"),
    flag("zero_optimization.stage3_gather_fp16_weights_on_model_save", "",
         "old name of stage3_gather_16bit_weights_on_model_save")
        .means("zero_optimization.stage3_gather_16bit_weights_on_model_save").in("3"),
    integer("zero_optimization.prefetch_bucket_size", "",
            "other name of stage3_prefetch_bucket_size").means("zero_optimization.stage3_prefetch_bucket_size").in("3"),
    integer("zero_optimization.param_persistence_threshold", "",
            "other name of stage3_param_persistence_threshold")
        .means("zero_optimization.stage3_param_persistence_threshold").in("3"),
    integer("zero_optimization.model_persistence_threshold", "",
            "other name of stage3_model_persistence_threshold")
        .means("zero_optimization.stage3_model_persistence_threshold").in("3"),
    integer("zero_optimization.max_live_parameters", "",
            "other name of stage3_max_live_parameters").means("zero_optimization.stage3_max_live_parameters").in("3"),
    integer("zero_optimization.max_reuse_distance", "",
            "other name of stage3_max_reuse_distance").means("zero_optimization.stage3_max_reuse_distance").in("3"),
    flag("zero_optimization.gather_16bit_weights_on_model_save", "",
         "other name of stage3_gather_16bit_weights_on_model_save")
        .means("zero_optimization.stage3_gather_16bit_weights_on_model_save").in("3"),

    // --- optimizer ---------------------------------------------------------------------------------------------------
    word("optimizer.type", "\"Adam\"",
         "Adam|AdamW|SGD|Lion|Adagrad|Lamb|!Muon|!OneBitAdam|!ZeroOneAdam|!OneBitLamb|!MuAdam|!MuAdamW|"
         "!MuSGD",
         "the optimizer; Adam decays decoupled (as AdamW) unless adam_w_mode is false")
        .instead("choose Adam, AdamW, SGD, Lion, Adagrad or Lamb"),
    flag("optimizer.legacy_fusion", "false",
         "DeepSpeed: its old fused kernels").no_effect("there is one kernel per optimizer"),
    real("optimizer.params.lr", "0.001", "learning rate (Adagrad: 0.01)").autom().run_time(),
    pair("optimizer.params.betas", "[0.9, 0.999]",
         "decay of the first and second moment").autom().run_time().of(with_betas),
    real("optimizer.params.eps", "1e-8",
         "added to the root of the second moment (Adagrad: 1e-10)").autom().run_time().of(with_eps),
    real("optimizer.params.weight_decay", "0",
         "weight decay; decoupled for Adam, AdamW, Lion, part of the gradient for SGD and Adagrad, of the direction "
         "for Lamb").autom().run_time(),
    flag("optimizer.params.bias_correction", "true", "divide the moments by 1 - beta^t").of(with_correction),
    flag("optimizer.params.adam_w_mode", "true",
         "false: weight decay is added to the gradient (Adam with L2); AdamW always decays decoupled").of(adams),
    flag("optimizer.params.torch_adam", "false",
         "DeepSpeed: PyTorch's Adam in place of its own").of(adams)
        .no_effect("there is one Adam here, with the same formula"),
    flag("optimizer.params.amsgrad", "false",
         "the AMSGrad variant").of("Adam|AdamW|Lamb|Adagrad").unsupported("it is not built: remove the key"),
    real("optimizer.params.momentum", "0", "momentum; 0 keeps no state").to("<1").autom().of("SGD"),
    real("optimizer.params.dampening", "0",
         "dampening of the momentum").of("SGD").unsupported("it is not built: remove the key"),
    flag("optimizer.params.nesterov", "false", "Nesterov momentum; needs momentum > 0").of("SGD"),
    real("optimizer.params.max_coeff", "10", "largest trust ratio").from(">0").of("Lamb"),
    real("optimizer.params.min_coeff", "0.01", "smallest trust ratio").of("Lamb"),
    real("optimizer.params.max_grad_norm", "0",
         "DeepSpeed: old place of clipping").unsupported("use gradient_clipping instead"),

    // --- scheduler ---------------------------------------------------------------------------------------------------
    word("scheduler.type", "", "WarmupLR|WarmupDecayLR|WarmupCosineLR|OneCycle|LRRangeTest",
         "the learning-rate schedule; default: the rate stays"),
    real("scheduler.params.warmup_min_lr", "0", "rate at the start").autom().of("WarmupLR|WarmupDecayLR"),
    real("scheduler.params.warmup_max_lr", "",
         "rate after the warm-up; default: optimizer.params.lr").autom().of("WarmupLR|WarmupDecayLR"),
    integer("scheduler.params.warmup_num_steps", "1000", "updates of the warm-up; 0 and 1 count as 2").autom().of(warm),
    word("scheduler.params.warmup_type", "\"log\"", "log|linear", "shape of the warm-up").of(warm),
    integer("scheduler.params.total_num_steps", "",
            "updates of the whole training; must be given").from("1").of("WarmupDecayLR|WarmupCosineLR"),
    real("scheduler.params.warmup_min_ratio", "0", "first rate, as a part of optimizer.params.lr").of("WarmupCosineLR"),
    real("scheduler.params.cos_min_ratio", "0.0001",
         "last rate, as a part of optimizer.params.lr").of("WarmupCosineLR"),
    real("scheduler.params.cycle_min_lr", "", "lowest rate of the cycle; must be given").of("OneCycle"),
    real("scheduler.params.cycle_max_lr", "", "highest rate of the cycle; must be given").of("OneCycle"),
    real("scheduler.params.decay_lr_rate", "0", "decay of the rate after the cycle").of("OneCycle"),
    integer("scheduler.params.cycle_first_step_size", "2000", "updates of the rising half").from("1").of("OneCycle"),
    integer("scheduler.params.cycle_second_step_size", "",
            "updates of the falling half; default: as the first").from("1").of("OneCycle"),
    integer("scheduler.params.cycle_first_stair_count", "0", "stairs of the rising half; 0: continuous").of("OneCycle"),
    integer("scheduler.params.cycle_second_stair_count", "",
            "stairs of the falling half; default: as the first").of("OneCycle"),
    integer("scheduler.params.decay_step_size", "0",
            "updates per unit of decay after the cycle; 0: no decay").of("OneCycle"),
    flag("scheduler.params.cycle_momentum", "true", "betas[0] runs against the rate").of("OneCycle"),
    real("scheduler.params.cycle_min_mom", "0.8", "lowest betas[0]").to("<1").of("OneCycle"),
    real("scheduler.params.cycle_max_mom", "0.9", "highest betas[0]").to("<1").of("OneCycle"),
    real("scheduler.params.decay_mom_rate", "0", "growth of betas[0] after the cycle").of("OneCycle"),
    real("scheduler.params.lr_range_test_min_lr", "0.001", "first rate").of("LRRangeTest"),
    integer("scheduler.params.lr_range_test_step_size", "2000",
            "updates per unit of growth").from("1").of("LRRangeTest"),
    real("scheduler.params.lr_range_test_step_rate", "1", "growth per unit").of("LRRangeTest"),
    flag("scheduler.params.lr_range_test_staircase", "false",
         "grow once per unit instead of at every update").of("LRRangeTest"),
    integer("scheduler.params.last_batch_iteration", "-1",
            "DeepSpeed: index of the last update when a run goes on").from("-1")
        .unsupported("the position comes from the checkpoint (zero_load): remove the key"),

    // --- numbers and batches -----------------------------------------------------------------------------------------
    flag("fp16.enabled", "false",
         "gradients of the context are divided by a loss scale; auto: on when an fp16 tensor is registered").autom(),
    flag("fp16.auto_cast", "false",
         "DeepSpeed: casts the inputs of the model").no_effect("inputs belong to the caller"),
    real("fp16.loss_scale", "0", "a fixed loss scale; 0: dynamic"),
    integer("fp16.initial_scale_power", "16", "the dynamic scale starts at 2 to this power").to("127").autom(),
    integer("fp16.loss_scale_window", "1000", "clean updates before the scale doubles").from("1").autom(),
    integer("fp16.hysteresis", "2", "overflows before the scale is halved").from("1").autom(),
    flag("fp16.consecutive_hysteresis", "false", "every clean update restores the hysteresis"),
    real("fp16.min_loss_scale", "1", "the scale does not fall below this").from(">0").autom(),
    flag("fp16.fused_mode", "true",
         "DeepSpeed: its fused fp16 optimizer").no_effect("there is one kernel per optimizer"),
    flag("fp16.fp16_master_weights_and_grads", "false",
         "DeepSpeed: masters and gradients in fp16").unsupported("masters and sums are fp32: remove the key"),
    flag("bf16.enabled", "false", "DeepSpeed: casts the model to bf16").autom().no_effect(types_known),
    flag("bf16.check_grad_overflow", "false",
         "DeepSpeed: looks for non-finite gradients")
        .no_effect("libzero.check_grad_overflow is for every type, and true by default"),
    flag("bf16.immediate_grad_update", "true",
         "DeepSpeed: adds each gradient at once").no_effect("gradients are added as they are handed over"),
    flag("bf16.bf16_master_weights_and_grads", "false",
         "DeepSpeed: masters and gradients in bf16").unsupported("masters and sums are fp32: remove the key"),
    flag("bf16.bf16_optimizer_states", "false",
         "DeepSpeed: moments in bf16").unsupported("states are fp32: remove the key"),
    real("gradient_clipping", "0",
         "limit of the global L2 norm; 0: off (DeepSpeed's newest default is 1.0)").autom().run_time(),
    integer("train_batch_size", "",
            "samples per update over all ranks; any two of the three sizes give the third").from("1").autom(),
    integer("train_micro_batch_size_per_gpu", "", "samples per rank and micro-step").from("1").autom(),
    integer("gradient_accumulation_steps", "",
            "micro-steps per update; default 1, or what the batch sizes give").from("1").autom(),
    flag("prescale_gradients", "false",
         "DeepSpeed: divide before the reduction")
        .no_effect("sums are taken in fp32 (fp64 for fp64), where they cannot overflow as 16-bit sums do, and the "
                   "mean is one division by ranks x micro-steps"),
    real("gradient_predivide_factor", "1.0",
         "DeepSpeed: divide by this before and by ranks / this after the reduction").from(">0")
        .no_effect("both divisions together are the mean, which is formed here by one exact division after the sum"),
    word("communication_data_type", "", "fp32|bf16|fp16",
         "type in which gradients travel; default: their own; sums are fp32 (fp64 for fp64)"),
    word("data_types.grad_accum_dtype", "\"fp32\"", "fp32|bf16|fp16",
         "type in which gradients are summed (fp64 for fp64 tensors)")
        .unsupported("gradients are summed in fp32: remove the key"),

    // --- reporting ---------------------------------------------------------------------------------------------------
    integer("steps_per_print", "",
            "DeepSpeed: prints every so many steps").from("1")
        .no_effect("the library prints nothing; zero_report gives the figures"),
    flag("wall_clock_breakdown", "false",
         "DeepSpeed: prints times").no_effect("the library prints nothing; zero_report gives the figures"),
    flag("memory_breakdown", "false",
         "DeepSpeed: prints memory").no_effect("the library prints nothing; zero_report gives the figures"),
    flag("comms_logger.enabled", "false",
         "DeepSpeed: log of every collective").unsupported("zero_report has the traffic: remove the key"),
    flag("comms_logger.verbose", "false", "DeepSpeed: one line per collective").no_effect("comms_logger is not built"),
    flag("comms_logger.prof_all", "true", "DeepSpeed: profile all collectives").no_effect("comms_logger is not built"),
    object("comms_logger.prof_ops", "DeepSpeed: collectives to profile").no_effect("comms_logger is not built"),
    flag("comms_logger.debug", "false", "DeepSpeed: names of callers").no_effect("comms_logger is not built"),
    flag("csv_monitor.enabled", "false",
         "DeepSpeed: figures as CSV files").unsupported("read zero_get_real and write them yourself: remove the key"),
    word("csv_monitor.output_path", "", "", "DeepSpeed: folder of the CSV files").no_effect("csv_monitor is not built"),
    word("csv_monitor.job_name", "", "", "DeepSpeed: name of the CSV files").no_effect("csv_monitor is not built"),
    flag("zero_allow_untested_optimizer", "false",
         "DeepSpeed: any PyTorch optimizer").no_effect("the caller's own optimizer works on zero_slice"),
    flag("zero_force_ds_cpu_optimizer", "true",
         "DeepSpeed: its CPU optimizer with offload").no_effect("there is one kernel per optimizer"),

    // --- aio ---------------------------------------------------------------------------------------------------------
    integer("aio.block_size", "1048576", "bytes per request").from("1").no_effect(nvme_only),
    integer("aio.queue_depth", "8", "requests in flight").from("1").no_effect(nvme_only),
    integer("aio.intra_op_parallelism", "1", "threads per request").from("1").no_effect(nvme_only),
    integer("aio.thread_count", "1", "old name of intra_op_parallelism").from("1").no_effect(nvme_only),
    flag("aio.single_submit", "false", "one request per submission").no_effect(nvme_only),
    flag("aio.overlap_events", "true", "submit and complete at once").no_effect(nvme_only),
    flag("aio.use_gds", "false", "GPUDirect storage").no_effect(nvme_only),

    // --- checkpoint --------------------------------------------------------------------------------------------------
    flag("checkpoint.async", "false",
         "zero_save copies the state and returns; a thread of each rank writes the copy, and a later call commits it: "
         "zero_wait, zero_save, zero_load, zero_finalize, or a zero_step after the last byte. Costs one more copy of the "
         "owned state in host memory"),
    word("checkpoint.load", "\"strict\"", "strict|weights|partial",
         "weights: only the values; masters are rebuilt, step and schedule start anew. partial: what fits; what is missing, more or "
         "of another shape stays as it is here and is listed in the log"),
    integer("checkpoint.ranks_per_file", "1", "ranks that share one part file").from("1").to("2147483647"),
    integer("checkpoint.keep_last", "0", "keep the newest so many checkpoints; 0: all"),
    integer("checkpoint.keep_every", "0",
            "with keep_last: also keep every checkpoint whose step is a multiple of this; 0: none"),
    word("checkpoint.tag_validation", "\"Warn\"", "Ignore|Warn|Fail",
         "DeepSpeed: compare tags over ranks").no_effect("tags that differ are always ZERO_ERR_MISMATCH"),
    flag("checkpoint.load_universal", "false",
         "DeepSpeed: load a converted checkpoint").no_effect("every checkpoint loads on any number of ranks"),
    flag("checkpoint.use_node_local_storage", "false",
         "DeepSpeed: files on each node's own disk")
        .unsupported("a checkpoint is one folder that all ranks see: remove the key"),
    flag("checkpoint.parallel_write.pipeline_stage", "false",
         "DeepSpeed: pipeline stages write at once").no_effect("all ranks write at once"),
    object("checkpoint.writer", "DeepSpeed: its writer").no_effect("there is one writer here"),

    // --- groups ------------------------------------------------------------------------------------------------------
    real("groups.*.lr", "", "rate of the group; under a schedule it keeps its ratio to optimizer.params.lr").run_time(),
    real("groups.*.weight_decay", "", "weight decay of the group").run_time(),
    pair("groups.*.betas", "", "decay of the moments").run_time().of(with_betas),
    real("groups.*.eps", "", "added to the root of the second moment").run_time().of(with_eps),
    flag("groups.*.frozen", "false", "not trained: gradients are dropped, states stay").run_time(),
    real("groups.*.lower", "", "the owner clamps to this after each update").from("").run_time(),
    real("groups.*.upper", "", "the owner clamps to this after each update").from("").run_time(),
    real("groups.*.momentum", "", "momentum of the group").to("<1").of("SGD"),
    flag("groups.*.nesterov", "", "Nesterov momentum").of("SGD"),
    real("groups.*.max_coeff", "", "largest trust ratio").from(">0").of("Lamb"),
    real("groups.*.min_coeff", "", "smallest trust ratio").of("Lamb"),
    flag("groups.*.model_replicated", "false",
         "the tensors are equal on all ranks of the model communicator: counted once in norms"),

    // --- libzero -----------------------------------------------------------------------------------------------------
    word("libzero.device", "\"auto\"", "auto|host|cuda",
         "where values live; auto: on the GPU where the program uses one when it calls zero_init, else in host memory").by_init(),
    integer("libzero.node_size", "0", "ranks per node by fiat; 0: as MPI finds").to("2147483647").by_init(),
    flag("libzero.node_shared", "true",
         "ranks of a node share memory: values exist once there, gradients are read where they lie, and cross the network once").by_init(),
    flag("libzero.reproducible", "false",
         "sums of gradients are exact and rounded once, so the bits do not depend on the number of ranks"),
    word("libzero.gradient_reduction", "\"mean\"", "mean|sum",
         "the gradient used: mean or sum over ranks and micro-steps"),
    flag("libzero.broadcast_initial", "true", "zero_commit makes rank 0's values the values everywhere"),
    integer("libzero.log_level", "",
            "most detailed lines that are logged").to("3").named("error|warning|info|debug").run_time(),
    real("libzero.end_time", "0",
         "seconds since 1970 at which the job ends; 0: SLURM_JOB_END_TIME, if that is set"),
    flag("libzero.checkpoint_signals", "false",
         "SIGUSR1 and SIGTERM make zero_should_stop say so"),
    flag("libzero.stale_check", "true",
         "an update whose gradients were formed from values that were never gathered is an error").in("3"),
    flag("libzero.check_grad_overflow", "true",
         "false: an update is applied whatever its gradient holds, and \"grad_norm\" is not known; gradients are then summed and applied in one pass. Not with gradient_clipping or fp16"),
    integer("libzero.threads", "0",
            "threads per rank for sums and updates, at most its cores; 0: OMP_NUM_THREADS, else 1").to("4096"),
    word("libzero.bind", "\"auto\"", "auto|cores|none",
         "each helper of libzero.threads stays on a core of its own, inside the launcher's mask; auto: where the mask has as many cores as the rank has threads"),
    word("libzero.overlap_thread", "\"auto\"", "auto|on|off",
         "with overlap_comm, a thread moves sums and gathers on while the caller computes; auto: where a core is to spare"),
    flag("libzero.end_window", "false", "set to 1, the next zero_step ends the accumulation window early").run_time(),
    integer("libzero.largest_count", "0", "largest count in one MPI call, at least 4, for tests; 0: 2^31-1").to("2147483647").by_init(),
};

constexpr std::size_t number_of_rows = std::size(rows);

// The public table is of plain options; built once, at compile time.
struct plain_table {
    option rows[number_of_rows];
};
constexpr plain_table strip() {
    plain_table out{};
    for (std::size_t i = 0; i < number_of_rows; ++i) out.rows[i] = rows[i];
    return out;
}
constexpr plain_table plain = strip();

}  // namespace

std::span<const option> table() noexcept { return plain.rows; }

}  // namespace zero::config
