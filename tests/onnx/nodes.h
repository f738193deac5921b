/* Written by make_nodes.py with onnxruntime 1.32.0: what it gives for two rows of files/node_*.onnx, and what
 * tandem says of those that it refuses. */
static const struct {
    const char *name, *says;
    int width;
    float y[16];
} nodes[] = {
    {"lstm_usual", "", 3, {-0.0177544858f, 0.100460425f, -0.118242718f, 0.00893728249f, 0.12027359f, -0.145678133f}},
    {"lstm_relu", "Sigmoid for the gates, Tanh for the rest", 0, {0}},
    {"lstm_alpha", "Sigmoid for the gates, Tanh for the rest", 0, {0}},
    {"lstm_wide", "a hidden_size of 1 to 16777216", 0, {0}},
    {"lstm_begun", "begins with a state of zeros", 0, {0}},
    {"gru_usual", "", 3, {-0.381904632f, -0.320953995f, -0.154231057f, -0.414721131f, -0.334867895f, -0.21863234f}},
    {"gru_few", "Sigmoid for the gates, Tanh for the rest", 0, {0}},
    {"gru_hard", "Sigmoid for the gates, Tanh for the rest", 0, {0}},
    {"state_second", "(Concat), output 'states'", 0, {0}},
    {"state_last", "", 3, {-0.0177544858f, 0.100460425f, -0.118242718f, 0.00893728249f, 0.12027359f, -0.145678133f}},
    {"split_computed", "neighbouring items", 0, {0}},
    {"split_many", "65 outputs", 0, {0}},
    {"split_even", "", 2, {0.0259233415f, 0.16531989f, 0.103132695f, -0.183783859f}},
    {"split_uneven", "", 1, {0.0274134856f, 0.0737441033f}},
    {"split_sizes",
     "",
     4,
     {0.0456923284f, -0.0368690342f, -0.173940107f, 0.0363310911f, 0.0848232657f, 0.0968523473f, 0.197995082f,
      0.0636451319f}},
    {"split_attribute",
     "",
     4,
     {0.0456923284f, -0.0368690342f, -0.173940107f, 0.0363310911f, 0.0848232657f, 0.0968523473f, 0.197995082f,
      0.0636451319f}},
    {"gelu_div",
     "",
     5,
     {-0.0423735455f, -0.0773028657f, 0.0586118363f, -0.0344523489f, 0.0990791321f, 0.0290246643f, 0.131881043f,
      -0.00369181181f, 0.0695646778f, -0.0733519718f}},
    {"gelu_by", "(Div), output 'a'", 0, {0}},
    {"unsqueeze_back",
     "",
     5,
     {0.0f, 0.0f, 0.107944705f, 0.0f, 0.174096361f, 0.0555853508f, 0.224044174f, 0.0f, 0.126412868f, 0.0f}},
    {"unsqueeze_two",
     "",
     5,
     {0.0f, 0.0f, 0.107944705f, 0.0f, 0.174096361f, 0.0555853508f, 0.224044174f, 0.0f, 0.126412868f, 0.0f}},
    {"unsqueeze_equal", "(Unsqueeze), output 'b'", 0, {0}},
};
enum { NODES = sizeof nodes / sizeof nodes[0] };
