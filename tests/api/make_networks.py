#!/usr/bin/env python3
"""Writes networks.txt: what torch makes of the networks of model.builtin. Made with torch 2.13.0 on the CPU (AVX2).

A network: name, tensors, CRC-32 of all parameters in the order of their names, then the logits of two samples. torchvision
has no build for this torch, so its modules are written here again, with the same names, constructors and forward passes.
"""
import pathlib
import zlib

import torch
from torch import nn


class Basic(nn.Module):
    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    expansion = 1

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, planes * 4, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(planes * 4)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, block, layers, classes=1000, zero_init=False, small=False):
        super().__init__()
        self.inplanes = 64
        self.conv1 = nn.Conv2d(3, 64, 3 if small else 7, 1 if small else 2, 1 if small else 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        for i in range(4):
            setattr(self, "layer%d" % (i + 1), self._make(block, 64 << i, layers[i], 1 if i == 0 else 2))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512 * block.expansion, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
        if zero_init:
            for m in self.modules():
                if isinstance(m, Bottleneck):
                    nn.init.constant_(m.bn3.weight, 0)
                elif isinstance(m, Basic):
                    nn.init.constant_(m.bn2.weight, 0)

    def _make(self, block, planes, count, stride):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(nn.Conv2d(self.inplanes, planes * block.expansion, 1, stride, bias=False),
                                       nn.BatchNorm2d(planes * block.expansion))
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        layers += [block(self.inplanes, planes) for _ in range(1, count)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class VGG11(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        layers, last = [], 3
        for width in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
            if width == "M":
                layers.append(nn.MaxPool2d(2, 2))
                continue
            layers += [nn.Conv2d(last, width, 3, padding=1), nn.ReLU(inplace=True)]
            last = width
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(nn.Linear(512 * 49, 4096), nn.ReLU(True), nn.Dropout(0.5), nn.Linear(4096, 4096),
                                        nn.ReLU(True), nn.Dropout(0.5), nn.Linear(4096, classes))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                nn.init.constant_(m.bias, 0)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


NETS = {"resnet18": lambda **k: ResNet(Basic, (2, 2, 2, 2), **k), "resnet34": lambda **k: ResNet(Basic, (3, 4, 6, 3), **k),
        "resnet50": lambda **k: ResNet(Bottleneck, (3, 4, 6, 3), **k), "vgg11": VGG11}


class MobileNetV2(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()

        def unit(i, o, k, s=1, g=1):
            return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), nn.ReLU6(True))

        class Inverted(nn.Module):
            def __init__(self, i, o, s, t):
                super().__init__()
                self.adds = s == 1 and i == o
                wide = i * t
                layers = [unit(i, wide, 1)] if t != 1 else []
                self.conv = nn.Sequential(*layers, unit(wide, wide, 3, s, wide), nn.Conv2d(wide, o, 1, bias=False),
                                          nn.BatchNorm2d(o))

            def forward(self, x):
                return x + self.conv(x) if self.adds else self.conv(x)

        features, last = [unit(3, 32, 3, 2)], 32
        for t, c, n, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                           (6, 320, 1, 1)):
            for k in range(n):
                features.append(Inverted(last, c, s if k == 0 else 1, t))
                last = c
        features.append(unit(last, 1280, 1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.ones_(m.weight)
                nn.init.zeros_(m.bias)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = nn.functional.adaptive_avg_pool2d(self.features(x), 1)
        return self.classifier(torch.flatten(x, 1))


NETS["mobilenet_v2"] = MobileNetV2


def main():
    lines = []
    for name in ("resnet18", "resnet34", "resnet50", "mobilenet_v2"):
        torch.manual_seed(7)
        net = NETS[name](classes=5)
        parameters = sorted(net.named_parameters())
        crc = 0
        for _, tensor in parameters:
            crc = zlib.crc32(tensor.detach().numpy().tobytes(), crc)
        net.eval()
        with torch.no_grad():
            y = net(torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(3)))
        lines.append("%s %d %08x %s" % (name, len(net.state_dict()), crc, " ".join("%.9g" % v for v in y.flatten().tolist())))
    (pathlib.Path(__file__).parent / "networks.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
