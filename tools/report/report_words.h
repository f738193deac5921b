/* report_words.h - the words of report.html, in English and Chinese. */
#ifndef REPORT_WORDS_H
#define REPORT_WORDS_H

#define REPORT_WORD_MAP(X)                                                                                       \
    X(SUMMARY, "Summary", "概要")                                                                                \
    X(MODE, "mode", "模式")                                                                                      \
    X(DEVICES, "devices", "设备数")                                                                              \
    X(PER_DEVICE, "batch per device", "每设备批大小")                                                            \
    X(GLOBAL, "samples per step", "每步样本数")                                                                  \
    X(PARAMETERS, "parameters", "参数量")                                                                        \
    X(STEPS, "steps", "步数")                                                                                    \
    X(STEP, "step", "步")                                                                                        \
    X(LOSS, "training loss", "训练损失")                                                                         \
    X(LOSS_CURVE, "training loss: running mean (EMA, 0.98 per step), and single steps behind it",                \
      "训练损失：滑动平均 (EMA，每步 0.98)，其后为单步值")                                                       \
    X(EVAL_LOSS, "evaluation loss", "评估损失")                                                                  \
    X(ACCURACY, "accuracy", "准确率")                                                                            \
    X(ACCURACY_PERCENT, "accuracy, %", "准确率 (%)")                                                             \
    X(TOP5, "top-5 accuracy", "前五准确率")                                                                      \
    X(TOP5_PERCENT, "top-5 accuracy, %", "前五准确率 (%)")                                                       \
    X(LR, "learning rate", "学习率")                                                                             \
    X(SPEED, "samples/s", "样本/秒")                                                                             \
    X(SECONDS, "training time", "训练时间")                                                                      \
    X(MOVED, "bytes moved per step, each process", "每步传输量（每进程）")                                       \
    X(MEMORY, "peak memory per device", "每设备内存峰值")                                                        \
    X(HASH, "params_xxh3", "params_xxh3")                                                                        \
    X(REASON, "exit reason", "结束原因")                                                                         \
    X(CURVES, "Curves", "曲线")                                                                                  \
    X(PHASES, "Time per phase of a step", "每步耗时分布")                                                        \
    X(STEP_MS, "milliseconds per step (communication: the exposed part)", "每步毫秒数 (通信仅计未隐藏部分)")     \
    X(OTHER, "other", "其他")                                                                                    \
    X(VERDICT, "Verdict", "结论")                                                                                \
    X(EQUAL_BITS, "Equal bits: parameters, buffers and optimizer state.", "参数、缓冲区与优化器状态逐位相同。")  \
    X(WITHIN, "Within the tolerance.", "在容差之内。")                                                           \
    X(NOT_WITHIN, "Outside the tolerance.", "超出容差。")                                                        \
    X(MAX_LOSS, "largest difference of the loss", "损失最大差")                                                  \
    X(MAX_PARAM, "largest difference of a parameter", "参数最大差")                                              \
    X(FIRST_STEP, "first differing step", "首个不同的步")                                                        \
    X(LAST_EVALUATION, "Last evaluation", "最近一次评估")                                                        \
    X(BEST_EVALUATION, "Best evaluation", "最好的一次评估")                                                      \
    X(CONFUSION, "confusion matrix", "混淆矩阵")                                                                 \
    X(LABEL, "label", "标签")                                                                                    \
    X(PREDICTED, "predicted", "预测")                                                                            \
    X(CLASSES, "Accuracy of each class", "各类别准确率")                                                         \
    X(BAD_SAMPLES, "Samples left out, at most 100 of each part", "略去的样本（每部分至多 100 个）")              \
    X(SHOTS, "what the model saw: label \xe2\x86\x92 what it was taken for", "模型所见：标签 \xe2\x86\x92 预测") \
    X(NO_SHOTS, "Their pictures cannot be shown", "无法显示图片")                                                \
    X(TOO_LARGE, "left out: the page would become too large", "略去：页面会过大")                                \
    X(LOSS_SHORT, "loss", "损失")                                                                                \
    X(WORST, "Samples with the highest losses", "损失最大的样本")                                                \
    X(SAMPLE, "sample", "样本")                                                                                  \
    X(SAMPLES, "samples", "样本数")                                                                              \
    X(CONFIG, "Configuration", "配置")                                                                           \
    X(CONFIG_DIFF, "Configuration: differences", "配置差异")                                                     \
    X(NO_DIFFERENCE, "none", "无")                                                                               \
    X(ENVIRONMENT, "Environment", "运行环境")

typedef enum report_word {
#define X(name, english, chinese) WORD_##name,
    REPORT_WORD_MAP(X)
#undef X
        WORD_COUNT
} report_word;

static const char *const report_words[WORD_COUNT][2] = {
#define X(name, english, chinese) {english, chinese},
    REPORT_WORD_MAP(X)
#undef X
};

#endif
